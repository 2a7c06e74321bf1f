// The little statistics that a page needs: ranks, densities, quantiles.

/** Ranks with ties shared. */
export function ranks(values) {
  const order = values.map((_, place) => place).sort((a, b) => values[a] - values[b]);
  const found = new Array(values.length);
  for (let first = 0; first < order.length;) {
    let last = first;
    while (last + 1 < order.length && values[order[last + 1]] === values[order[first]]) last++;
    for (let i = first; i <= last; i++) found[order[i]] = (first + last) / 2;
    first = last + 1;
  }
  return found;
}

export function pearson(x, y) {
  const n = x.length;
  const mean = (list) => list.reduce((sum, value) => sum + value, 0) / n;
  const [mx, my] = [mean(x), mean(y)];
  let [xy, xx, yy] = [0, 0, 0];
  for (let i = 0; i < n; i++) {
    xy += (x[i] - mx) * (y[i] - my);
    xx += (x[i] - mx) ** 2;
    yy += (y[i] - my) ** 2;
  }
  return xx > 0 && yy > 0 ? xy / Math.sqrt(xx * yy) : null;
}

/** Spearman's rank correlation over the pairs where both are known; null for fewer than `least`. */
export function spearman(x, y, least = 3) {
  const both = x.map((value, place) => [value, y[place]]).filter(([a, b]) => known(a) && known(b));
  if (both.length < least) return null;
  return pearson(ranks(both.map((pair) => pair[0])), ranks(both.map((pair) => pair[1])));
}

/** The share of the variance of some values that lies between their groups; 0 where nothing can be said. */
export function explained(values, groups) {
  const by = new Map();
  values.forEach((value, at) => known(value) && by.set(groups[at], [...(by.get(groups[at]) ?? []), value]));
  const all = [...by.values()].flat();
  const mean = (list) => list.reduce((sum, value) => sum + value, 0) / list.length;
  const whole = mean(all);
  const total = all.reduce((sum, value) => sum + (value - whole) ** 2, 0);
  if (by.size < 2 || !(total > 0)) return 0;
  return [...by.values()].reduce((sum, list) => sum + list.length * (mean(list) - whole) ** 2, 0) / total;
}

export const known = (value) => typeof value === "number" && Number.isFinite(value);

export function quantile(sorted, share) {
  const place = (sorted.length - 1) * share;
  const low = Math.floor(place);
  return sorted[low] + (sorted[Math.min(low + 1, sorted.length - 1)] - sorted[low]) * (place - low);
}

/** A Gaussian kernel density at some points, by Silverman's rule. */
export function density(values, points) {
  const sorted = [...values].sort((a, b) => a - b);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const deviation = Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / Math.max(1, values.length - 1));
  const spread = (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / 1.34;
  const width = 0.9 * (Math.min(deviation, spread || deviation) || 1e-3) * values.length ** -0.2;
  const scale = 1 / (values.length * width * Math.sqrt(2 * Math.PI));
  return points.map((point) => scale * values.reduce((sum, value) => sum + Math.exp(-0.5 * ((point - value) / width) ** 2), 0));
}
