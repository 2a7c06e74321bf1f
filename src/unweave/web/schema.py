"""What the API answers, as types: the source of its OpenAPI schema."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

Kind = Literal["active", "mixed", "passive"]
Matrix = list[list[float | None]]
Side = Literal["foster", "diminish"]


class Answer(BaseModel):
    """Everything that is answered is complete, and nothing is added to it."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Problem(Answer):
    """Why there is no answer, in one sentence."""

    detail: str


class StoreAnswer(Answer):
    """What there is to look at."""

    name: str
    version: str
    n_runs: int
    studies: list["StudyName"]
    searches: list[str]
    note: str = ""
    """Why nothing can be read, where that is so."""


class StudyName(Answer):
    name: str
    title: str
    place: str = ""
    """The folder of the store inside the opened one that the study is in."""


class Column(Answer):
    """One column of the table. With ``words`` the values are places in that list, and −1 is nothing."""

    name: str
    words: list[str] | None
    values: list[Any]


class Table(Answer):
    """Runs as columns: those that changed since the version asked for. ``shared`` is what all have in common."""

    version: int
    whole: bool
    complete: bool
    n_found: int
    n_rows: int
    gone: list[str]
    columns: list[Column]
    shared: dict[str, Any]


class Sparklines(Answer):
    """The loss of some runs over their training, at most 40 points each."""

    losses: dict[str, list[float]]


class Factor(Answer):
    name: str
    size: int
    kind: str


class ColumnAnswer(Answer):
    """A column of a table, and how its values are spread."""

    name: str
    mean: float
    deviation: float


class RunAnswer(Answer):
    """A run: what it was meant to be and how far it came. ``message`` says why there is no model to look at."""

    id: str
    path: str
    """As a command takes it."""
    title: str
    state: str
    message: str | None
    world: str
    objective: str
    latents: int
    step: int
    steps: int
    shape: list[int]
    is_image: bool
    no_decoder: str | None = None
    """Why nothing can be decoded, where the method trains an encoder alone."""
    factors: list[Factor]
    columns: list[ColumnAnswer] = []
    """Of a run on a table."""
    config: dict[str, Any]
    environment: dict[str, Any]
    files: list[str]


class HistoryAnswer(Answer):
    """Loss terms and the KL of every latent over training, thinned to a few hundred rows."""

    steps: list[int]
    terms: dict[str, list[float | None]]
    kl: list[list[float | None]]
    """One list a latent; none where nothing is encoded."""


class LatentAnswer(Answer):
    latent: int
    type: Kind
    kl: float
    mean_variance: float
    variance_of_mean: float
    low: float
    high: float
    """Where 98 % of the mean codes lie."""
    mean_histogram: list[float]
    sampled_histogram: list[float]
    """Densities over the bins of ``edges``."""


class LatentsAnswer(Answer):
    """Every latent over a sample of examples, the most informative first."""

    n_examples: int
    reconstruction: float | None
    stochastic: bool
    edges: list[float]
    latents: list[LatentAnswer]
    start_row: int
    start: list[float]
    """The row and the mean code of the example whose code is nearest the middle."""
    findings: list[str]


class FindingAnswer(Answer):
    name: str
    weight: str
    text: str
    advice: str
    reference: str


class EvidenceAnswer(Answer):
    latent: int
    type: Kind
    evidence: str
    kl: float
    mean_variance: float
    correlation: float
    partner: int | None


class DiagnosisAnswer(Answer):
    """What stands out, in words, and the numbers behind it; what is unknown is left out."""

    n_examples: int
    findings: list[FindingAnswer]
    latents: list[EvidenceAnswer]
    numbers: dict[str, float]
    correlation: Matrix


class ScoreAnswer(Answer):
    metric: str
    representation: Literal["mean", "sampled"]
    value: float | None
    low: float | None
    high: float | None
    higher_is_better: bool | None
    paper: str


class MatrixAnswer(Answer):
    """A matrix behind the scores; ``metric`` is empty for those that belong to no single one."""

    metric: str
    title: str
    representation: Literal["mean", "sampled"]
    rows: list[str]
    columns: list[str]
    values: Matrix
    diverging: bool


class ScoresAnswer(Answer):
    """Scores kept by ``unweave evaluate``, or a quick look where there are none; and matrices."""

    kept: bool
    n_samples: int
    protocol: str
    """Examples, split and seed behind the numbers."""
    scores: list[ScoreAnswer]
    matrices: list[MatrixAnswer]
    left_out: dict[str, str]
    trivial: list[str]
    """Metrics that are 1 for any code that varies, where there is one factor alone."""


class ExamplesAnswer(Answer):
    """Rows of the data with their factors and mean codes; the pictures come from ``examples/pixels``."""

    rows: list[int]
    names: list[str]
    factors: list[list[float]]
    codes: list[list[float]]
    n_data: int


class CodesToDecode(BaseModel):
    """A list of points of the latent space."""

    model_config = ConfigDict(extra="forbid")

    codes: list[list[FiniteFloat]] = Field(min_length=1, max_length=400, examples=[[[0.0, 1.5, -0.5]]])


class RowsAnswer(Answer):
    """Rows of a table, in the units of its columns."""

    rows: list[list[float]]


class EncodedAnswer(Answer):
    """What the model makes of an image: its code, and the image as the model was shown it, as a PNG in base64."""

    code: list[float]
    variance: list[float]
    kl: list[float]
    picture: str


class FactorChoice(Answer):
    """A factor with the value that is shown, of 0 … size − 1."""

    name: str
    size: int
    value: int


class SeenCode(Answer):
    """Mean codes of an image before and after from a model, and σ before; ``missing`` says why there are none."""

    id: str
    side: Side
    before: list[float]
    after: list[float]
    deviation: list[float]
    missing: str = ""


class ManipulationAnswer(Answer):
    """One example of a manipulation; its pictures come from ``manipulation/pixels``."""

    epsilon: float
    trained_epsilon: float
    farthest: float
    """How far the pixel moves that moves most."""
    factors: list[FactorChoice]
    row: int
    models: list[SeenCode]


class MatchAnswer(Answer):
    left: int
    right: int
    correlation: float


class CompareAnswer(Answer):
    """Two runs layer by layer, and which latent of one is which of the other."""

    left: str
    right: str
    rows: list[str]
    columns: list[str]
    splits: list[int]
    cka: Matrix
    procrustes: Matrix
    matches: list[MatchAnswer]
    score: float | None
    left_types: list[Kind]
    right_types: list[Kind]
    correlation: Matrix
    n_examples: int
    identical: bool
    answer: str


class Mark(Answer):
    """A published claim beside ours. One with a ``value`` and a ``column`` of the table is drawn as a mark."""

    what: str
    published: str
    value: float | None
    column: str | None
    ours: float | None
    verdict: str


class Protocol(Answer):
    """What a measure was taken with: in words, and in full with the file it is kept in."""

    words: str
    title: str


class StudyAnswer(Answer):
    """A study: the runs it asked for (all of the store's where none are named) and what was published."""

    name: str
    title: str
    place: str = ""
    """The folder of the store inside the opened one that it is in."""
    ids: list[str] | None
    marks: list[Mark]
    protocols: list[Protocol] = []
    settings: dict[str, str] = {}
    """The settings of measures in words, by the hash in the names of their columns."""
    note: str = ""


class Visit(Answer):
    """One model of a dimension search. ``passes`` is None while it trains, or where no threshold is known yet."""

    id: str
    value: float
    steps: int
    state: str
    step: int
    first: float | None
    second: float | None
    passes: bool | None
    types: dict[str, int]


class SearchAnswer(Answer):
    """A dimension search, as far as it has come. ``answer`` is None until it has ended."""

    name: str
    title: str
    over: str
    method: str
    threshold: float | None
    first: str
    second: str
    answer: float | None
    running: bool
    visits: list[Visit]
    findings: list[str]
