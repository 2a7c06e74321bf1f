"""The bibliography: everything that metrics, findings, reproductions and pages cite, by key. Plain data."""

PAPERS: dict[str, str] = {
    "bonheme2023polarised": "L. Bonheme. The Polarised Regime of Variational Autoencoders. PhD thesis, University of "
    "Kent, 2023.",
    "carbonneau2022measuring": "M.-A. Carbonneau, J. Zaïdi, J. Boilard, G. Gagnon. Measuring Disentanglement: "
    "A Review of Metrics. IEEE Transactions on Neural Networks and Learning Systems, 2022.",
    "chen2018isolating": "R. T. Q. Chen, X. Li, R. Grosse, D. Duvenaud. Isolating Sources of Disentanglement in "
    "Variational Autoencoders. NeurIPS, 2018.",
    "do2020theory": "K. Do, T. Tran. Theory and Evaluation Metrics for Learning Disentangled Representations. "
    "ICLR, 2020.",
    "duan2020unsupervised": "S. Duan, L. Matthey, A. Saraiva, N. Watters, C. P. Burgess, A. Lerchner, I. Higgins. "
    "Unsupervised Model Selection for Variational Disentangled Representation Learning. ICLR, 2020.",
    "eastwood2018framework": "C. Eastwood, C. K. I. Williams. A Framework for the Quantitative Evaluation of "
    "Disentangled Representations. ICLR, 2018.",
    "facco2017estimating": "E. Facco, M. d'Errico, A. Rodriguez, A. Laio. Estimating the Intrinsic Dimension of "
    "Datasets by a Minimal Neighborhood Information. Scientific Reports 7, 2017.",
    "higgins2017beta": "I. Higgins, L. Matthey, A. Pal, C. Burgess, X. Glorot, M. Botvinick, S. Mohamed, "
    "A. Lerchner. beta-VAE: Learning Basic Visual Concepts with a Constrained Variational Framework. ICLR, 2017.",
    "hsu2023disentanglement": "K. Hsu, W. Dorrell, J. C. R. Whittington, J. Wu, C. Finn. Disentanglement via Latent "
    "Quantization. NeurIPS, 2023.",
    "hyvarinen2016unsupervised": "A. Hyvärinen, H. Morioka. Unsupervised Feature Extraction by Time-Contrastive "
    "Learning and Nonlinear ICA. NeurIPS, 2016.",
    "kim2018disentangling": "H. Kim, A. Mnih. Disentangling by Factorising. ICML, 2018.",
    "kumar2018variational": "A. Kumar, P. Sattigeri, A. Balakrishnan. Variational Inference of Disentangled Latent "
    "Concepts from Unlabeled Observations. ICLR, 2018.",
    "levina2004maximum": "E. Levina, P. J. Bickel. Maximum Likelihood Estimation of Intrinsic Dimension. "
    "NeurIPS, 2004.",
    "li2020progressive": "Z. Li, J. V. Murkute, P. K. Gyawali, L. Wang. Progressive Learning and Disentanglement of "
    "Hierarchical Representations. ICLR, 2020.",
    "locatello2019challenging": "F. Locatello, S. Bauer, M. Lucic, G. Rätsch, S. Gelly, B. Schölkopf, O. Bachem. "
    "Challenging Common Assumptions in the Unsupervised Learning of Disentangled Representations. ICML, 2019.",
    "mackay2005comments": "D. J. C. MacKay, Z. Ghahramani. Comments on 'Maximum Likelihood Estimation of Intrinsic "
    "Dimension' by E. Levina and P. Bickel. Cavendish Laboratory, Cambridge, 2005.",
    "ridgeway2018learning": "K. Ridgeway, M. C. Mozer. Learning Deep Disentangled Embeddings with the F-Statistic "
    "Loss. NeurIPS, 2018.",
    "rolinek2019variational": "M. Rolínek, D. Zietlow, G. Martius. Variational Autoencoders Pursue PCA Directions "
    "(by Accident). CVPR, 2019.",
    "ross2014mutual": "B. C. Ross. Mutual Information between Discrete and Continuous Data Sets. PLoS ONE 9(2), 2014.",
    "roy2007effective": "O. Roy, M. Vetterli. The Effective Rank: A Measure of Effective Dimensionality. "
    "EUSIPCO, 2007.",
    "sepliarskaia2019not": "A. Sepliarskaia, J. Kiseleva, M. de Rijke. How to Not Measure Disentanglement. "
    "arXiv:1910.05587, 2019.",
    "suter2019robustly": "R. Suter, Đ. Miladinović, B. Schölkopf, S. Bauer. Robustly Disentangled Causal Mechanisms: "
    "Validating Deep Representations for Interventional Robustness. ICML, 2019.",
    "unweave": "unweave: train, measure and explain variational autoencoders. This software.",
    "zietlow2022analysis": "D. Zietlow. An Analysis of the Inner Workings of Variational Autoencoders. Dissertation, "
    "Eberhard Karls Universität Tübingen, 2022.",
}
"""Full citations."""

SHORT: dict[str, str] = {
    "bonheme2023polarised": "Bonheme (2023), The polarised regime of variational autoencoders (thesis)",
    "locatello2019challenging": "Locatello et al. (2019)",
    "unweave": "unweave",
    "zietlow2022analysis": "Zietlow (2022), An Analysis of the Inner Workings of Variational Autoencoders",
}
"""How the papers that are reproduced here are named on pages and in lists."""
