"""Each published race in the version that had it, and in the one that mended it (cases.py)."""

import pathlib

from judged import SCHEDULES
from published.cases import CASES

HERE = pathlib.Path(__file__).parent


def judge(tools, case, version):
    """{schedule: what was said}"""
    program, *arguments = case.program.split()
    path = [tools.folder_of(each) for each in (version, *case.besides)]
    return {schedule: tools.run(schedule, HERE / program, *arguments, path=path)
            for schedule in SCHEDULES}


def is_in(operation, folder):
    return operation["file"].startswith(str(folder))


def faults_before(case, folder, said):
    """Every schedule reports the race at a line of the package, and those of `wrong` show it by
    values.
    """
    for schedule, judged in said.items():
        where = f"{case.before} {' '.join(schedule)}"
        if judged.status != 1 or judged.kinds() != case.kinds:
            yield f"{where}: exit {judged.status}, {judged.kinds()}\n{judged.told}"
        for race in judged.violations:
            if not any(is_in(race[which], folder) for which in ("operation", "previous_operation")):
                yield f"{where}: not in {folder}: {race['message']}"
        wanted = str(case.wrong.isdisjoint(schedule))
        if judged.last_line() != wanted:
            yield f"{where}: {judged.last_line()}, not {wanted}\n{judged.told}"


def faults_after(case, said):
    for schedule, judged in said.items():
        if judged.status or judged.last_line() != "True" or not judged.operations:
            yield (f"{case.after} {' '.join(schedule)}: exit {judged.status}, "
                   f"{judged.last_line()}\n{judged.told}")


def try_case(tools, case):
    """(a row of the table, faults)"""
    said = judge(tools, case, case.before)
    faults = list(faults_before(case, tools.folder_of(case.before), said))
    races = {len(judged.violations) for judged in said.values() if judged.violations}
    if case.after:
        faults += faults_after(case, judge(tools, case, case.after))
    row = (case.what, case.before.replace("==", " "), ", ".join(sorted(case.kinds)),
           " or ".join(map(str, sorted(races))), ", ".join(sorted(case.wrong, reverse=True)),
           case.after.replace("==", " ") or "none")
    return row, faults


def try_all(tools, names, pool):
    chosen = [case for case in CASES if not names or any(name in case.program for name in names)]
    yield from pool.map(lambda case: try_case(tools, case), chosen)


HEAD = ("race", "version", "reported", "places", "values wrong under", "clean in")
