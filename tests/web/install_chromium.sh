# Chromium for the tests of the explorer's page. It always ends well: without a browser those tests are skipped, visibly.
said="no chromium here, so the explorer's page will not be tested; install it with: apt-get install chromium (or your system's own way)"
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing chromium …"
    export DEBIAN_FRONTEND=noninteractive
    apt="timeout 600 apt-get -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o DPkg::Lock::Timeout=60"
    $apt install -y --no-install-recommends chromium >/dev/null 2>&1 ||
        { $apt update >/dev/null 2>&1; $apt install -y --no-install-recommends chromium >/dev/null 2>&1; } || true
fi
command -v chromium || command -v chromium-browser || command -v google-chrome || echo "$said"
