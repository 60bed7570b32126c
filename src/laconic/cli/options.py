"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

DataArgument = Annotated[
    str, typer.Argument(help="CSV (also .gz, .zst), Parquet or Arrow file; - is CSV on stdin.")
]
ManyArgument = Annotated[
    str,
    typer.Argument(
        help="CSV (also .gz, .zst), Parquet or Arrow file; - is CSV on stdin. A folder or a "
        "quoted glob such as 'train/*.parquet' is read block by block."
    ),
]
ModelArgument = Annotated[Path, typer.Argument(help="model.json written by `laconic fit`.")]
TargetOption = Annotated[str, typer.Option(help="Column to predict.")]
CostOption = Annotated[
    list[str] | None,
    typer.Option("--cost", help="fp=1 and fn=10: what a false alarm and a miss cost. Repeat it."),
]
CostsOption = Annotated[
    Path | None,
    typer.Option("--costs", help="CSV matrix: a row for each true class, a column by decision."),
]
PriorOption = Annotated[
    list[str] | None,
    typer.Option("--prior", help="0.02: share of the positive class where the model is used; "
                 "NAME=0.2 for a class. Repeat it."),
]  # fmt: skip
BudgetOption = Annotated[
    str | None, typer.Option("--budget", help="Keep the best of so much time: 60s, 5m, 1h.")
]
ModelsOption = Annotated[
    list[str] | None,
    typer.Option("--only", "--model", help="Compare these families only: additive,rules."),
]
PositiveOption = Annotated[
    str | None, typer.Option(help="The class that fp, fn and one --prior are about (1 of 0/1).")
]
OutOption = Annotated[Path, typer.Option("--out", help="Folder for model.json and report.html.")]
FileOption = Annotated[Path | None, typer.Option("--out", "-o", help="File (default: stdout).")]
SeedOption = Annotated[
    int, typer.Option(min=0, help="Seed of the split into training and test rows.")
]
SeparatorOption = Annotated[str | None, typer.Option(help="Separator of a CSV (default: found).")]
EncodingOption = Annotated[
    str | None,
    typer.Option(help="Encoding of a CSV (default: UTF-8, UTF-16 by its mark, else cp1252)."),
]
ClusterOption = Annotated[
    str | None, typer.Option("--cluster", help="Scheduler of a dask cluster: tcp://HOST:8786.")
]
ScanOption = Annotated[
    bool, typer.Option("--scan", help="Read one file block by block too, not into memory.")
]
KindsOption = Annotated[
    list[str] | None,
    typer.Option("--as", help="COLUMN=KIND: number, number-comma, date, date-dmy, date-mdy, time, "
                 "duration, yes/no, code, category or id. Repeat it."),
]  # fmt: skip
DropOption = Annotated[
    list[str] | None, typer.Option("--drop", help="Column to leave out. Repeat it.")
]
KeepOption = Annotated[
    list[str] | None,
    typer.Option("--keep", help="Column to keep though it looks like an identifier. Repeat it."),
]
MissingOption = Annotated[
    str | None, typer.Option("--missing", help="More texts that mean missing: '-,none given'.")
]
MonotoneOption = Annotated[
    list[str] | None,
    typer.Option("--monotone", help="income=-: the probability of the positive class only falls "
                 "with this number; + rises. Repeat it."),
]  # fmt: skip
ForbidOption = Annotated[
    list[str] | None,
    typer.Option("--forbid", help="age:sex: no term of these two columns together. Repeat it."),
]
GroupOption = Annotated[
    str | None,
    typer.Option("--group", help="Column whose rows belong together (a patient): they are held "
                 "out together. Default: a column called an id that repeats."),
]  # fmt: skip
TimeOption = Annotated[
    str | None,
    typer.Option("--time", help="Column of dates or numbers: the last rows are held out, and folds "
                 "judge what comes later."),
]  # fmt: skip
NoGroupOption = Annotated[
    bool, typer.Option("--no-group", help="Hold out rows one by one, whatever ids repeat.")
]
CostColumnOption = Annotated[
    list[str] | None,
    typer.Option("--cost-column", help="fn=amount: what a miss (fp: a false alarm) costs stands in "
                 "this column, row by row. Repeat it."),
]  # fmt: skip
ScenarioOption = Annotated[
    list[str] | None,
    typer.Option("--scenario", help="peak:fp=1,fn=20: other costs for the same model; see "
                 "predict --scenario. Repeat it."),
]  # fmt: skip
ChampionOption = Annotated[
    Path | None,
    typer.Option("--champion", help="model.json of the model in use: the report compares."),
]
ChampionColumnOption = Annotated[
    str | None,
    typer.Option("--champion-column", help="Column with the probability that the model in use "
                 "gives the positive class."),
]  # fmt: skip
JsonOption = Annotated[bool, typer.Option("--json", help="JSON on stdout, messages on stderr.")]
LanguageOption = Annotated[str, typer.Option(help="Language of the report: en or fr.")]
SentencesOption = Annotated[
    str, typer.Option("--language", help="Language of the sentences: en or fr.")
]
WeightOption = Annotated[
    str | None, typer.Option("--weight", help="Column of weights of the rows.")
]
CasesOption = Annotated[
    str | None, typer.Option("--cases", help="How many cases come: 5000/month (day, week, year).")
]
CurrencyOption = Annotated[
    str | None, typer.Option("--currency", help="Unit of the costs, shown in the report: EUR.")
]
ReasonLanguageOption = Annotated[str, typer.Option(help="Language of reasons in words: en or fr.")]
AgainstOption = Annotated[
    str | None,
    typer.Option("--against", help="Rows to give reasons in words against: their mean row "
                 "(default: the mean row that the model was measured on)."),
]  # fmt: skip
