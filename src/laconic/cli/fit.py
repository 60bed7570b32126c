"""``laconic demo``, ``fit``, ``look`` and ``compare``: from a table to a model."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from laconic.cli.options import (
    BudgetOption,
    CasesOption,
    ChampionColumnOption,
    ChampionOption,
    ClusterOption,
    CostColumnOption,
    CostOption,
    CostsOption,
    CurrencyOption,
    DropOption,
    EncodingOption,
    ForbidOption,
    GroupOption,
    JsonOption,
    KeepOption,
    KindsOption,
    LanguageOption,
    ManyArgument,
    MissingOption,
    ModelsOption,
    MonotoneOption,
    NoGroupOption,
    OutOption,
    PositiveOption,
    PriorOption,
    ScanOption,
    ScenarioOption,
    SeedOption,
    SentencesOption,
    SeparatorOption,
    TargetOption,
    TimeOption,
    WeightOption,
)
from laconic.cli.screen import (
    columns_of,
    comparison_table,
    console,
    in_language,
    look_table,
    print_notes,
    print_whole,
    read_asked,
    read_cost_columns,
    read_cost_words,
    read_language,
    read_models,
    read_pairs,
    read_priors,
    read_scenarios,
    read_seconds,
    read_signs,
    refuse_for_scans,
    screen_line,
    title_of,
    without_nan,
)

if TYPE_CHECKING:
    from laconic.data.reading.reading import Reading
    from laconic.job.rows import JobRows
    from laconic.job.table import JobOptions, JobResult


_GROUPED = "rows with the same {name!r} are held out together; --no-group changes it"


def demo(
    out: OutOption = Path("laconic-demo"), seed: SeedOption = 0, language: LanguageOption = "en"
) -> None:
    """Fit a model on generated card payments, few of them fraud, and write its report.

    The table is written too, as DIR/payments.csv, to try the other commands on.
    """
    from laconic.cli.first_use import compiled_meanwhile
    from laconic.data.demo import DEMO_COSTS, make_payments, payments_text
    from laconic.data.tables.spoken import Numbers
    from laconic.export.atomic import write_atomically
    from laconic.job.rows import JobRows
    from laconic.job.table import JobOptions

    payments, label = make_payments(random_state=seed)
    numbers = Numbers(read_language(language))
    rows, share = numbers.whole(payments.n_rows), numbers.percent((label == "fraud").mean())
    said = screen_line(language, "payments", rows=rows, share=share, **DEMO_COSTS)
    console().print(said)
    options = JobOptions(
        costs=dict(DEMO_COSTS), positive="fraud", seed=seed, language=read_language(language)
    )
    title = screen_line(language, "title")
    with compiled_meanwhile():
        _fit_and_write(JobRows(payments, label), options, out, title, as_json=False)
    write_atomically(out / "payments.csv", payments_text(payments, label))
    console().print(screen_line(language, "table", path=out / "payments.csv"), markup=False)


def fit(
    data: ManyArgument,
    target: TargetOption,
    out: OutOption,
    cost: CostOption = None,
    costs: CostsOption = None,
    positive: PositiveOption = None,
    prior: PriorOption = None,
    reject_cost: Annotated[float | None, typer.Option(help="Cost of abstaining.")] = None,
    model: ModelsOption = None,
    budget: BudgetOption = None,
    seed: SeedOption = 0,
    separator: SeparatorOption = None,
    encoding: EncodingOption = None,
    language: LanguageOption = "en",
    max_size: Annotated[
        float | None,
        typer.Option(min=1, help="Most entries of the model (default: a page of 300)."),
    ] = None,
    kinds: KindsOption = None,
    drop: DropOption = None,
    keep: KeepOption = None,
    missing: MissingOption = None,
    weight: WeightOption = None,
    drop_missing_target: Annotated[
        bool, typer.Option("--drop-missing-target", help="Leave out rows without a class.")
    ] = False,
    guarantee: Annotated[
        list[str] | None,
        typer.Option(
            help="What decisions must keep: 'recall>=0.95', 'recall(NAME)>=0.9', "
            "'precision>=0.5', 'cost<=0.2', 'false_alarms<=0.01'. Repeat it."
        ),
    ] = None,
    capacity: Annotated[
        str | None, typer.Option(help="Cases that may be decided positive: 100/5000.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="Of all guarantees together.")] = 0.95,
    cases: CasesOption = None,
    currency: CurrencyOption = None,
    monotone: MonotoneOption = None,
    forbid: ForbidOption = None,
    group: GroupOption = None,
    no_group: NoGroupOption = False,
    time: TimeOption = None,
    cost_column: CostColumnOption = None,
    scenario: ScenarioOption = None,
    champion: ChampionOption = None,
    champion_column: ChampionColumnOption = None,
    cluster: ClusterOption = None,
    scan: ScanOption = False,
    as_json: JsonOption = False,
) -> None:
    """From a table and costs to the smallest model that is good enough, and its report.

    Writes DIR/model.json and DIR/report.html. A quarter of the rows is held out for the report.

    With a folder, a glob, --scan or --cluster the rows are not read into memory: the families that
    fit so are compared on about 200,000 rows, the chosen one is fitted on all of them, and at most
    250,000 are held out.
    """
    from laconic.data.scan.files import names_many
    from laconic.data.tables.text import TextFormat
    from laconic.job.rows import Beside, read_rows
    from laconic.job.scan import run_scan_job
    from laconic.job.table import JobOptions

    text, asked = TextFormat(separator, encoding), read_asked(kinds, drop, keep, missing)
    options = JobOptions(
        read_cost_words(cost, costs), positive, read_priors(prior), reject_cost,
        read_models(model), read_seconds(budget), seed, read_language(language), max_size, target,
        tuple(guarantee or ()), capacity, confidence, cases, currency,
        monotone=read_signs(monotone), forbid=read_pairs(forbid),
        scenarios=read_scenarios(scenario),
    )  # fmt: skip
    columns = read_cost_columns(cost_column)
    beside = Beside(weight, "" if no_group else group, time, columns, champion, champion_column)
    title = title_of(target, data, language)
    if cluster is not None or scan or names_many(data):
        refuse_for_scans(
            {
                "--drop-missing-target": drop_missing_target,
                "--cost-column": columns,
                "--scenario": scenario,
                "--champion": champion,
                "--champion-column": champion_column,
            }
        )
        notes: list[str] = []

        def show_reading(reading: "Reading") -> None:
            notes.extend(reading.notes())
            if not as_json:
                print_notes(console(), notes, language)

        def grouped(name: str) -> None:
            notes.append(_GROUPED.format(name=name))
            if not as_json:
                print_notes(console(), notes[-1:], language)

        def job() -> "JobResult":
            return run_scan_job(
                data, target, options, text, asked, beside=beside, cluster=cluster, out=out,
                title=title, on_read=show_reading, on_group=grouped,
            )  # fmt: skip

        _print_result(job, options, notes, as_json=as_json)
        return
    rows = read_rows(
        data, target, text, asked, beside=beside, positive=positive,
        drop_missing=drop_missing_target,
    )  # fmt: skip
    _fit_and_write(rows, options, out, title, as_json=as_json)


def look(
    data: ManyArgument,
    target: Annotated[
        str | None, typer.Option(help="Column to predict: columns that hold the answer are named.")
    ] = None,
    separator: SeparatorOption = None,
    encoding: EncodingOption = None,
    kinds: KindsOption = None,
    drop: DropOption = None,
    keep: KeepOption = None,
    missing: MissingOption = None,
    language: SentencesOption = "en",
    scan: ScanOption = False,
    as_json: JsonOption = False,
) -> None:
    """What each column was read as and why, and what is suspicious; nothing is fitted.

    The options are those of `laconic fit`, which reads the table in the same way.
    """
    import json

    from laconic.cli.progress import progress
    from laconic.data.scan.files import names_many
    from laconic.data.tables.text import TextFormat
    from laconic.job.rows import look_at_file
    from laconic.job.scan import look_at_scan

    text, asked = TextFormat(separator, encoding), read_asked(kinds, drop, keep, missing)
    language = read_language(language)
    with progress(as_json):
        many = scan or names_many(data)
        found = (look_at_scan if many else look_at_file)(data, target, text, asked)
    if as_json:
        sys.stdout.write(json.dumps(without_nan(found.to_dict())) + "\n")
        return
    screen = console()
    screen.print(in_language(found.title, language), markup=False, soft_wrap=True)
    screen.print(look_table(found.rows(), language))
    print_notes(screen, found.suspicions, language)


def compare(
    data: ManyArgument,
    target: TargetOption,
    cost: CostOption = None,
    costs: CostsOption = None,
    positive: PositiveOption = None,
    prior: PriorOption = None,
    model: ModelsOption = None,
    budget: BudgetOption = None,
    seed: SeedOption = 0,
    separator: SeparatorOption = None,
    encoding: EncodingOption = None,
    kinds: KindsOption = None,
    drop: DropOption = None,
    keep: KeepOption = None,
    missing: MissingOption = None,
    language: SentencesOption = "en",
    weight: WeightOption = None,
    monotone: MonotoneOption = None,
    forbid: ForbidOption = None,
    group: GroupOption = None,
    no_group: NoGroupOption = False,
    time: TimeOption = None,
    cost_column: CostColumnOption = None,
    cluster: ClusterOption = None,
    scan: ScanOption = False,
    as_json: JsonOption = False,
) -> None:
    """Compare the families by the cost of held-out decisions; nothing is written.

    With a folder, a glob, --scan or --cluster the rows are not read into memory, and the families
    that fit so are compared on about 200,000 of them.
    """
    import json

    from laconic.cli.progress import progress
    from laconic.data.scan.files import names_many
    from laconic.data.tables.text import TextFormat
    from laconic.job.rows import Beside, read_rows
    from laconic.job.scan import compare_scan
    from laconic.job.table import JobOptions, compare_rows

    language = read_language(language)
    options = JobOptions(
        read_cost_words(cost, costs), positive, read_priors(prior), None, read_models(model),
        read_seconds(budget), seed, monotone=read_signs(monotone), forbid=read_pairs(forbid),
    )  # fmt: skip
    asked, text = read_asked(kinds, drop, keep, missing), TextFormat(separator, encoding)
    columns = read_cost_columns(cost_column)
    beside = Beside(weight, "" if no_group else group, time, columns)

    def told(notes: list[str]) -> None:
        if not as_json:
            print_notes(console(), notes, language)

    if cluster is not None or scan or names_many(data):
        refuse_for_scans({"--cost-column": columns})
        with progress(as_json):
            fitted = compare_scan(
                data, target, options, text, asked, beside=beside, cluster=cluster,
                on_read=lambda reading: told(reading.notes()),
                on_group=lambda name: told([_GROUPED.format(name=name)]),
            )  # fmt: skip
    else:
        rows = read_rows(data, target, text, asked, beside=beside)
        told(rows.notes())
        with progress(as_json):
            fitted = compare_rows(rows, options)
    compared = columns_of(fitted.comparison_)
    if as_json:
        sys.stdout.write(json.dumps(without_nan(compared)) + "\n")
        return
    print_whole(console(), comparison_table(compared, language))


def _fit_and_write(
    rows: "JobRows", options: "JobOptions", out: Path, title: str, *, as_json: bool
) -> None:
    from laconic.job.table import run_job

    if not as_json:
        print_notes(console(), rows.notes(), options.language)
    _print_result(
        lambda: run_job(rows, options, out=out, title=title),
        options,
        rows.notes(),
        as_json=as_json,
    )


def _print_result(
    job: Callable[[], "JobResult"], options: "JobOptions", notes: list[str], *, as_json: bool
) -> None:
    import json

    from laconic.cli.progress import progress
    from laconic.reporting.render import to_terminal
    from laconic.reporting.summary import compact

    with progress(as_json):
        done = job()
    if as_json:
        said = {
            "model": str(done.model_path),
            "report": str(done.report_path),
            "candidate": done.model.candidate_,
            "positive": done.positive,
            "notes": notes,
            **compact(done.summary),
        }
        sys.stdout.write(json.dumps(without_nan(said)) + "\n")
        return
    screen = console()
    compared = comparison_table(columns_of(done.model.comparison_), options.language)
    print_whole(screen, compared)
    print_whole(screen, to_terminal(done.shown, language=options.language))
    language, name = options.language, done.shown["positive"]
    hint = screen_line(language, "changed") if options.positive is None else ""
    screen.print(screen_line(language, "positive", name=name) + hint, markup=False)
    written = screen_line(language, "wrote", model=done.model_path, report=done.report_path)
    screen.print(written, markup=False)
