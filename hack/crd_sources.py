"""The definitions in api/crd, as those who generate something from them read them."""

import pathlib

import edges
import guard
import yaml

SOURCES = sorted((pathlib.Path(__file__).resolve().parent.parent / "api/crd").glob("*.yaml"))
COPY = "x-holdfast-copy"
EDGES = "x-holdfast-edges"
GUARDED = "x-holdfast-guard"


def overlay(base, changes):
    """`changes` over `base`: objects are merged, null takes a key away, all else replaces."""
    result = dict(base)
    for key, value in changes.items():
        if value is None:
            del result[key]
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = overlay(result[key], value)
        else:
            result[key] = value
    return result


def copy_of(field):
    """A field of spec as a stage has it: without rules on its old value, as the list of stages never changes."""
    if isinstance(field, list):
        return [copy_of(item) for item in field]
    if not isinstance(field, dict):
        return field
    copy = {key: copy_of(value) for key, value in field.items() if key != "x-kubernetes-validations"}
    rules = [rule for rule in field.get("x-kubernetes-validations", []) if "oldSelf" not in rule["rule"]]
    if rules:
        copy["x-kubernetes-validations"] = rules
    if isinstance(copy.get("description"), str):
        copy["description"] = copy["description"].replace(" Mutable.", " Immutable.")
    return copy


def add_copies(spec):
    """Puts the fields of spec that a stage has too into the items of spec.stages."""
    if "stages" not in spec["properties"]:
        return
    items = spec["properties"]["stages"]["items"]
    for name in items.pop(COPY):
        items["properties"][name] = overlay(copy_of(spec["properties"][name]), items["properties"].get(name, {}))


def add_edges(status):
    """Makes the rules on changes of the phase."""
    phase = status["properties"].get("phase", {})
    for schema in (status, phase):
        rules = schema.get("x-kubernetes-validations", [])
        for place, rule in enumerate(rules):
            if EDGES in rule:
                made = edges.RULES[rule.pop(EDGES)](phase["enum"])
                message = rule.pop("message")
                rules[place] = {"rule": made["rule"], **rule, "messageExpression": made["message"], "message": message}


def read_whole(path):
    """A definition of api/crd without the pod's schema, with all its rules, and whether some go to policies."""
    source = yaml.safe_load(path.read_text())
    for version in source["spec"]["versions"]:
        schema = version["schema"]["openAPIV3Schema"]["properties"]
        add_copies(schema["spec"])
        add_edges(schema["status"])
    return source, source.pop(GUARDED, False)


def read(path):
    """The same without the rules that go to policies, and these policies."""
    source, guarded = read_whole(path)
    return source, guard.split(source) if guarded else []


def policy_rules():
    """{kind: [case]} of the rules in the policies, see hack/guard.py."""
    wholes = [read_whole(source) for source in SOURCES]
    return {source["spec"]["names"]["kind"]: [case for _, _, cases in guard.take(source) for case in cases]
            for source, guarded in wholes if guarded}
