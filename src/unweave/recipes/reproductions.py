"""Every published result that can be reproduced here, by its id. Listing them imports none of them."""

import importlib
from typing import TYPE_CHECKING, NamedTuple

from unweave.papers import SHORT

if TYPE_CHECKING:
    from unweave.recipes.reproduction import Reproduction

FOLDERS = {
    "bonheme2023": "bonheme2023polarised",
    "locatello2019": "locatello2019challenging",
    "own": "unweave",
    "zietlow2022": "zietlow2022analysis",
}
"""One folder a paper, and its key in the bibliography."""


class Listed(NamedTuple):
    """One line of the list: the file below ``recipes/`` with a ``REPRODUCTION``, and what it says of itself."""

    module: str
    title: str
    place: str
    """Where in the paper."""

    @property
    def paper(self) -> str:
        """Author, year and title, in short."""
        return SHORT[FOLDERS[self.module.partition(".")[0]]]

    @property
    def source(self) -> str:
        """The paper and the place."""
        return f"{self.paper}, {self.place}"


REPRODUCTIONS: dict[str, Listed] = {
    "b-fig-5.1": Listed("bonheme2023.fig_5_1", "Passive latents of an iVAE with prior mean 0", "Figure 5.1"),
    "b-fig-5.2": Listed("bonheme2023.fig_5_2", "Active latents of an iVAE with prior mean 0", "Figure 5.2"),
    "b-fig-5.3": Listed("bonheme2023.fig_5_3", "Passive latents of an iVAE with a learned prior mean", "Figure 5.3"),
    "b-fig-5.4": Listed("bonheme2023.fig_5_4", "Active latents of an iVAE with a learned prior mean", "Figure 5.4"),
    "b-fig-6.2": Listed("bonheme2023.fig_6_2", "Mean codes of passive, mixed and active latents", "Figure 6.2"),
    "b-fig-6.3": Listed("bonheme2023.fig_6_3", "Sampled codes of passive, mixed and active latents", "Figure 6.3"),
    "b-fig-6.4": Listed("bonheme2023.fig_6_4", "Accuracy by type of latent", "Figure 6.4"),
    "b-fig-6.5": Listed("bonheme2023.fig_6_5", "Types of latents against the strength", "Figure 6.5"),
    "b-fig-6.6": Listed(
        "bonheme2023.fig_6_6", "TC, MI and effective rank against the number of passive latents", "Figure 6.6"
    ),
    "b-fig-6.7": Listed(
        "bonheme2023.fig_6_7", "MI of mean and sampled codes, with and without passive latents", "Figure 6.7"
    ),
    "b-fig-6.8": Listed(
        "bonheme2023.fig_6_8", "TC of mean and sampled codes, with and without passive latents", "Figure 6.8"
    ),
    "b-fig-6.9": Listed("bonheme2023.fig_6_9", "Correlations of passive latents", "Figure 6.9"),
    "b-fig-6.10": Listed("bonheme2023.fig_6_10", "How often latents are correlated over training", "Figure 6.10"),
    "b-fig-6.11": Listed("bonheme2023.fig_6_11", "Correlations of an active latent over training", "Figure 6.11"),
    "b-fig-B": Listed(
        "bonheme2023.fig_b", "AnnealedVAE: passive latents at every capacity (Figures B.1 to B.5)", "Appendix B"
    ),
    "b-fig-7.1": Listed("bonheme2023.fig_7_1", "CKA and Procrustes over numbers of examples", "Figure 7.1"),
    "b-fig-7.2": Listed("bonheme2023.fig_7_2", "CKA early in training and at its end", "Figure 7.2"),
    "b-fig-7.3": Listed("bonheme2023.fig_7_3", "CKA of weakly and strongly regularised models", "Figure 7.3"),
    "b-fig-7.4": Listed("bonheme2023.fig_7_4", "CKA of β-VAE and DIP-VAE-II", "Figure 7.4"),
    "b-fig-7.5": Listed("bonheme2023.fig_7_5", "CKA and Procrustes over epochs", "Figure 7.5"),
    "b-fig-7.6": Listed("bonheme2023.fig_7_6", "CKA and Procrustes of two objectives", "Figure 7.6"),
    "b-fig-7.7": Listed("bonheme2023.fig_7_7", "CKA and Procrustes of the first layers", "Figure 7.7"),
    "b-fig-7.8": Listed("bonheme2023.fig_7_8", "CKA over epochs, fully connected", "Figure 7.8"),
    "b-fig-7.9": Listed("bonheme2023.fig_7_9", "CKA of strengths, fully connected", "Figure 7.9"),
    "b-fig-7.10": Listed("bonheme2023.fig_7_10", "CKA of β-VAE and DIP-VAE-II, fully connected", "Figure 7.10"),
    "b-section-7.4.4": Listed(
        "bonheme2023.section_7_4_4", "Models whose mean codes are alike have as many active latents", "Section 7.4.4"
    ),
    "b-fig-C": Listed("bonheme2023.fig_c", "Classifiers, all snapshots, and convergence", "Appendix C"),
    "b-fig-8.1": Listed(
        "bonheme2023.fig_8_1", "Traces of mean and sampled codes against the number of latents", "Figure 8.1"
    ),
    "b-fig-8.4": Listed("bonheme2023.fig_8_4", "Intrinsic dimension of the data", "Figure 8.4"),
    "b-fig-8.5": Listed("bonheme2023.fig_8_5", "Elbow curves of VAEs", "Figure 8.5"),
    "b-fig-8.6": Listed("bonheme2023.fig_8_6", "Elbow curves of deterministic autoencoders", "Figure 8.6"),
    "b-fig-8.7": Listed("bonheme2023.fig_8_7", "Elbow curves of other objectives", "Figure 8.7"),
    "b-fig-8.8": Listed("bonheme2023.fig_8_8", "Elbow curves of fully connected VAEs", "Figure 8.8"),
    "b-fig-8.9": Listed("bonheme2023.fig_8_9", "Intrinsic dimension of mean and sampled codes", "Figure 8.9"),
    "b-fig-8.10": Listed("bonheme2023.fig_8_10", "Types of latents against their number", "Figure 8.10"),
    "b-fig-8.11": Listed("bonheme2023.fig_8_11", "Intrinsic dimension of layers over training", "Figure 8.11"),
    "b-fig-8.12": Listed("bonheme2023.fig_8_12", "Elbow curves and FONDUE_IDE", "Figure 8.12"),
    "b-table-8.1": Listed("bonheme2023.table_8_1", "FONDUE and FONDUE_IB", "Table 8.1"),
    "b-table-8.2": Listed("bonheme2023.table_8_2", "FONDUE for several β", "Table 8.2"),
    "b-table-8.3": Listed("bonheme2023.table_8_3", "FONDUE for DIP-VAE-II", "Table 8.3"),
    "b-table-8.4": Listed("bonheme2023.table_8_4", "FONDUE from any start, SymSol", "Table 8.4"),
    "b-table-8.5": Listed("bonheme2023.table_8_5", "FONDUE from any start, CelebA", "Table 8.5"),
    "b-table-8.6": Listed("bonheme2023.table_8_6", "FONDUE from any start, dSprites", "Table 8.6"),
    "b-table-8.7": Listed("bonheme2023.table_8_7", "FONDUE and FONDUE_IB, fully connected", "Table 8.7"),
    "b-table-8.8": Listed("bonheme2023.table_8_8", "FONDUE and FONDUE_IDE", "Table 8.8"),
    "b-fig-D.1": Listed("bonheme2023.fig_d_1", "Elbow curves of β-VAEs of several strengths, SymSol", "Figure D.1"),
    "b-fig-D.2": Listed("bonheme2023.fig_d_2", "Elbow curves of β-VAEs of several strengths, dSprites", "Figure D.2"),
    "b-fig-D.3": Listed("bonheme2023.fig_d_3", "Elbow curves of DIP-VAE-II of two strengths, SymSol", "Figure D.3"),
    "b-fig-D.4": Listed("bonheme2023.fig_d_4", "Elbow curves of DIP-VAE-II of two strengths, dSprites", "Figure D.4"),
    "b-table-D.5": Listed("bonheme2023.table_d_5", "BS_FONDUE and IB", "Table D.5"),
    "k-1": Listed("locatello2019.k_1", "Regularisation unties the sampled codes, not the mean ones", "Figure 1"),
    "k-2": Listed("locatello2019.k_2", "All metrics but modularity agree, mildly", "Figure 2"),
    "k-3": Listed("locatello2019.k_3", "Seeds and strengths matter more than the objective", "Figure 3 and Table 2"),
    "k-4": Listed("locatello2019.k_4", "Good settings hardly transfer", "§5.5"),
    "k-5": Listed(
        "locatello2019.k_5", "Disentangled codes predict better, but need no fewer labels", "Figures 5 and 6"
    ),
    "k-6": Listed(
        "locatello2019.k_6",
        "Position, then scale, shape and orientation, as the capacity rises",
        "after Burgess et al. (2018), Figure 3",
    ),
    "k-7": Listed("locatello2019.k_7", "No score without labels selects a model", "§5.4 and §5.5"),
    "k-8": Listed(
        "locatello2019.k_8", "The BetaVAE metric does not miss a factor that is missing", "the metric's loophole"
    ),
    "k-theorem-1": Listed(
        "locatello2019.theorem_1",
        "Without further assumptions nothing tells disentangled factors from entangled ones",
        "Theorem 1",
    ),
    "u-supervision": Listed(
        "own.supervision", "Pairs and labels help where they mean something", "the gain of supervision"
    ),
    "u-epsilon": Listed(
        "own.epsilon",
        "How strong a change must be before VAEs stop disentangling",
        "beyond Zietlow (2022), chapter 4",
    ),
    "u-transfer": Listed(
        "own.transfer", "A manipulation hurts models that it was not made for", "beyond Zietlow (2022), chapter 4"
    ),
    "z-table-3.2": Listed("zietlow2022.table_3_2", "Training is polarised almost from its beginning", "Table 3.2"),
    "z-table-3.3": Listed("zietlow2022.table_3_3", "Diagonal posteriors make decoders orthogonal", "Table 3.3"),
    "z-fig-3.4": Listed("zietlow2022.fig_3_4", "The more orthogonal, the better disentangled", "Figure 3.4"),
    "z-table-3.4": Listed(
        "zietlow2022.table_3_4", "Equal singular values leave the directions open", "Table 3.4 and Figure 3.5"
    ),
    "z-fig-3.6": Listed("zietlow2022.fig_3_6", "Nonlinear eigenfaces", "Figure 3.6"),
    "z-fig-3.7": Listed("zietlow2022.fig_3_7", "Over β: a plateau, then a collapse in steps", "Figure 3.7"),
    "z-table-4.2": Listed(
        "zietlow2022.table_4_2", "MIG falls on modified images for every VAE, and for no other method", "Table 4.2"
    ),
    "z-table-4.3": Listed(
        "zietlow2022.table_4_3", "DCI falls on modified images for every VAE, and for no other method", "Table 4.3"
    ),
    "z-table-4.4": Listed(
        "zietlow2022.table_4_4",
        "The FactorVAE score falls on modified images for every VAE, and for no other method",
        "Table 4.4",
    ),
    "z-table-4.5": Listed(
        "zietlow2022.table_4_5", "SAP falls on modified images for every VAE, and for no other method", "Table 4.5"
    ),
    "z-fig-4.3": Listed("zietlow2022.fig_4_3", "Changes of the images that nobody sees", "Figure 4.3"),
    "z-fig-4.4": Listed("zietlow2022.fig_4_4", "No strength brings MIG back on modified images", "Figure 4.4"),
    "z-fig-4.5": Listed("zietlow2022.fig_4_5", "No strength brings DCI back on modified images", "Figure 4.5"),
    "z-fig-4.6": Listed(
        "zietlow2022.fig_4_6", "No strength brings the FactorVAE score back on modified images", "Figure 4.6"
    ),
    "z-fig-4.7": Listed("zietlow2022.fig_4_7", "No strength brings SAP back on modified images", "Figure 4.7"),
    "z-fig-4.8": Listed("zietlow2022.fig_4_8", "Some models disentangle modified images all the same", "Figure 4.8"),
    "z-fig-4.9": Listed("zietlow2022.fig_4_9", "MIG falls for every factor", "Figure 4.9"),
    "z-fig-4.10": Listed("zietlow2022.fig_4_10", "Disentangled models hold two factors along two axes", "Figure 4.10"),
    "z-fig-4.11": Listed(
        "zietlow2022.fig_4_11", "Entangled models hold two factors as angle and radius", "Figure 4.11"
    ),
    "z-fig-7.6": Listed(
        "zietlow2022.fig_7_6", "The ELBO approaches the IMA objective as the decoder grows precise", "Figure 7.6"
    ),
    "z-theorem-1": Listed(
        "zietlow2022.theorem_1", "No local minima, and orthogonal columns in all of them", "Theorem 1"
    ),
    "z-theorem-2": Listed("zietlow2022.theorem_2", "A linear VAE finds the directions of PCA", "Theorem 2"),
}
"""One line a reproduction."""


def find_reproduction(name: str) -> "Reproduction":
    """A reproduction by its id, loaded now."""
    if name not in REPRODUCTIONS:
        from unweave.config import unknown

        raise unknown("reproduction", name, REPRODUCTIONS)
    module = importlib.import_module(f"unweave.recipes.{REPRODUCTIONS[name].module}")
    found: Reproduction = module.REPRODUCTION
    return found
