"""What a run leaves behind, in one file, so that anybody can judge it again: the ledger, the strikes, what each API
said during the run, and all objects at its end.

    write(path, evidence)   read(path)   judged(evidence) -> {system: Verdict}
"""

import gzip
import json
import pathlib

from referee.checker import Pod, Run, Struck, Wait, Worker, judge
from referee.ledger import Unit, unpacked
from referee.systems import ALL, CANARIES, RESCUED

KINDS = ALL | RESCUED | CANARIES


def write(path, evidence):
    """The same bytes for the same evidence."""
    text = json.dumps(evidence, sort_keys=True, separators=(",", ":"))
    pathlib.Path(path).write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def read(path):
    return json.loads(gzip.decompress(pathlib.Path(path).read_bytes()))


def judged(evidence):
    """{system: Verdict}, by the checker of today."""
    claims, waits, submitted = [], [], {}
    for name, part in evidence["systems"].items():
        system = KINDS[name](None, evidence["indexes"], evidence["seconds"])
        claims += system.claims(list(part["submitted"]), part["objects"])
        submitted |= {(name, job): at for job, at in part["submitted"].items()}
        waits += [Wait(at, Unit(name, job, index), why, pod) for at, job, index, why, pod in part["waits"]]
    strikes = [Struck(one["kind"], one["begin"], one["end"], tuple(one["nodes"]), tuple(one["keys"]))
               for one in evidence["strikes"]]
    pods = [Pod(Unit(system, job, index), uid, *more) for uid, system, job, index, *more in evidence["pods"]]
    workers = [Worker(*one) for one in evidence.get("workers", [])]
    names = list(evidence["systems"])
    return judge(Run(unpacked(evidence["attempts"]), strikes, claims, evidence["over"], submitted, waits, pods, workers,
                     {name: KINDS[name].slots for name in names if KINDS[name].slots},
                     tuple(name for name in names if KINDS[name].agents)))


def kept(item):
    """What is judged of an object: its name, its times and its status. The specs are in the systems' classes."""
    meta = {key: item["metadata"][key] for key in ("name", "creationTimestamp", "deletionTimestamp")
            if key in item["metadata"]}
    return {key: item[key] for key in item if key not in ("spec", "metadata", "apiVersion", "kind")} | {"metadata": meta}
