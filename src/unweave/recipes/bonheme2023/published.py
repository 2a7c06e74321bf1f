"""Tables 8.1 to 8.8 and D.5 of Bonheme (2023) as printed: n over ten seeds (mean, sd), models trained, epochs each."""

from unweave.models.objectives import DIPVAEII, BetaVAE
from unweave.recipes.bonheme2023.rows import Row

FONDUE_ROWS = (
    Row("fondue", "symsol", 19.1, 0.7, 8, 1),
    Row("fondue", "dsprites", 10.9, 0.7, 4, 2),
    Row("fondue", "celeba", 32.6, 0.7, 6, 2),
)

IB_ROWS = (
    Row("fondue_ib", "symsol", 23.3, 0.5, 8, 6),
    Row("fondue_ib", "dsprites", 15.7, 0.5, 5, 2),
    Row("fondue_ib", "celeba", 18.4, 0.7, 5, 3),
)

TABLE_8_1 = (*FONDUE_ROWS, *IB_ROWS)

TABLE_8_2 = (
    Row("fondue", "symsol", 26.0, 0.7, 8, 3, BetaVAE(0.5)),
    Row("fondue", "dsprites", 13.6, 1.2, 6, 3, BetaVAE(0.5)),
    Row("fondue", "celeba", 49.9, 1.5, 8, 4, BetaVAE(0.5)),
    Row("fondue", "symsol", 13.6, 0.8, 6, 1, BetaVAE(2.0)),
    Row("fondue", "dsprites", 7.4, 0.5, 5, 1, BetaVAE(2.0)),
    Row("fondue", "celeba", 21.9, 0.3, 6, 1, BetaVAE(2.0)),
    Row("fondue", "symsol", 10.0, 0.5, 6, 1, BetaVAE(4.0)),
    Row("fondue", "dsprites", 6.3, 0.7, 5, 1, BetaVAE(4.0)),
    Row("fondue", "celeba", 15.9, 1.0, 6, 3, BetaVAE(4.0)),
)

TABLE_8_3 = (
    Row("fondue", "symsol", 17.5, 1.1, 8, 1, DIPVAEII(0.5)),
    Row("fondue", "dsprites", 10.2, 0.6, 4, 1, DIPVAEII(0.5)),
    Row("fondue", "celeba", 27.3, 1.7, 6, 1, DIPVAEII(0.5)),
    Row("fondue", "symsol", 15.9, 2.0, 7, 1, DIPVAEII(1.0)),
    Row("fondue", "dsprites", 9.5, 1.0, 5, 1, DIPVAEII(1.0)),
    Row("fondue", "celeba", 22.7, 2.3, 6, 1, DIPVAEII(1.0)),
    Row("fondue", "symsol", 12.4, 1.1, 6, 1, DIPVAEII(2.0)),
    Row("fondue", "dsprites", 7.9, 0.7, 6, 2, DIPVAEII(2.0)),
    Row("fondue", "celeba", 20.9, 1.8, 6, 2, DIPVAEII(2.0)),
    Row("fondue", "symsol", 11.7, 0.9, 6, 2, DIPVAEII(4.0)),
    Row("fondue", "dsprites", 8.1, 0.7, 6, 1, DIPVAEII(4.0)),
    Row("fondue", "celeba", 18.7, 1.4, 6, 3, DIPVAEII(4.0)),
)

TABLE_8_4 = (
    Row("fondue", "symsol", 19.3, 0.5, 7, 1, start=5),
    Row("fondue", "symsol", 18.2, 0.4, 4, 1, start=19),
    Row("fondue", "symsol", 18.7, 0.8, 5, 1, start=22),
    Row("fondue", "symsol", 19.0, 0.8, 6, 1, start=39),
    Row("fondue", "symsol", 18.9, 0.9, 8, 1, start=74),
    Row("fondue", "symsol", 19.0, 0.8, 9, 1, start=94),
    Row("fondue", "symsol", 18.7, 0.5, 9, 1, start=116),
    Row("fondue", "symsol", 19.3, 0.7, 8, 1, start=145),
    Row("fondue", "symsol", 19.1, 0.6, 8, 1, start=180),
    Row("fondue", "symsol", 18.8, 0.9, 9, 1, start=182),
)

TABLE_8_5 = (
    Row("fondue", "celeba", 32.4, 1.9, 8, 2, start=5),
    Row("fondue", "celeba", 32.3, 0.8, 7, 2, start=19),
    Row("fondue", "celeba", 32.4, 1.2, 6, 2, start=22),
    Row("fondue", "celeba", 31.6, 1.8, 8, 2, start=39),
    Row("fondue", "celeba", 31.7, 0.8, 8, 2, start=74),
    Row("fondue", "celeba", 31.9, 1.1, 9, 2, start=94),
    Row("fondue", "celeba", 32.2, 0.4, 8, 2, start=116),
    Row("fondue", "celeba", 32.1, 1.1, 8, 2, start=145),
    Row("fondue", "celeba", 32.2, 1.3, 9, 2, start=180),
    Row("fondue", "celeba", 31.9, 1.3, 10, 2, start=182),
)

TABLE_8_6 = (
    Row("fondue", "dsprites", 10.6, 1.1, 6, 2, start=5),
    Row("fondue", "dsprites", 10.6, 0.8, 6, 2, start=19),
    Row("fondue", "dsprites", 10.7, 0.5, 5, 2, start=22),
    Row("fondue", "dsprites", 11.2, 0.6, 7, 2, start=39),
    Row("fondue", "dsprites", 11.2, 0.8, 7, 2, start=74),
    Row("fondue", "dsprites", 11.1, 1.0, 8, 2, start=94),
    Row("fondue", "dsprites", 10.5, 1.1, 8, 2, start=116),
    Row("fondue", "dsprites", 11.0, 0.7, 8, 2, start=145),
    Row("fondue", "dsprites", 10.9, 0.6, 8, 2, start=180),
    Row("fondue", "dsprites", 11.1, 0.9, 8, 2, start=182),
)

TABLE_8_7 = (
    Row("fondue", "symsol", 7.6, 0.7, 5, 3, dense=True),
    Row("fondue", "dsprites", 5.2, 0.6, 5, 1, dense=True),
    # the sd is printed as "0." in the source
    Row("fondue", "celeba", 22.0, 0.0, 6, 4, dense=True),
    Row("fondue_ib", "symsol", 11.0, 0.5, 6, 4, dense=True),
    Row("fondue_ib", "dsprites", 12.3, 0.5, 5, 2, dense=True),
    Row("fondue_ib", "celeba", 16.4, 0.7, 5, 1, dense=True),
)

TABLE_8_8 = (
    *FONDUE_ROWS,
    Row("fondue_ide", "symsol", 12.6, 0.5, 6, 2),
    Row("fondue_ide", "dsprites", 10.1, 0.7, 4, 2),
    Row("fondue_ide", "celeba", 34.7, 1.0, 6, 4),
)

TABLE_D_5 = (
    Row("bs_fondue", "symsol", 19.2, 0.6, 8, 1),
    Row("bs_fondue", "dsprites", 11.3, 0.8, 8, 2),
    Row("bs_fondue", "celeba", 32.2, 1.0, 8, 2),
    Row("ib", "symsol", 23.6, 0.8, 8, 6),
    Row("ib", "dsprites", 15.6, 0.5, 8, 2),
    Row("ib", "celeba", 18.5, 0.5, 8, 3),
)
