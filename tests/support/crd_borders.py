"""The borders of each field of a CRD: values at them, which the API server takes, and values beyond, which it refuses.

    for body, wrong in rounds(schema, "spec"):
        ...                                         # send `body` as the object's spec
        assert not surprises(wrong, answer)         # it refuses what is wrong, for its reason, and nothing else

A round changes many fields at once, so a whole kind takes some thirty requests. Each round has something that is wrong
in such a way that the API server leaves out the rules in CEL, which these bodies would break.

The schema of the pod template is Kubernetes' own, so nothing below `template` is tried. A pattern or a type that this
file does not know is an error: then no field is forgotten.
"""

import copy
import json
import re

TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "busybox:1.36", "command": ["true"]}]}}
MISSING = object()
# A value of another type.
OTHER_TYPE = {"integer": "1", "string": 1, "boolean": "yes", "object": 1, "array": 1}


def _names(length):
    return "a" * length


def _indexes(length):
    return "1," * (length // 2) + "1" if length % 2 else "1," * (length // 2 - 1) + "10"


# For each pattern of ours a text of so many characters that matches it.
TEXTS = {
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$": _names,
    r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$": _names,
    r"^(0|[1-9][0-9]{0,4})(-[1-9][0-9]{0,4})?(,[1-9][0-9]{0,4}(-[1-9][0-9]{0,4})?)*$": _indexes,
    r"^[0-9]+/[0-9]+$": lambda length: "0/" + "1" * (length - 2),
    r"^(0|[1-9][0-9]*)-of-[1-9][0-9]*$": lambda length: "0-of-" + "1" * (length - 5),
    None: lambda length: "x" * length,
}
# For each pattern of a time: times that match it, and times that do not.
TIMES = {
    r"^(19[7-9]\d|20\d\d)-\d\d-\d\dT\d\d:\d\d:\d\dZ$": (
        ["1970-01-01T00:00:00Z", "2099-12-31T23:59:59Z"], ["1969-12-31T23:59:59Z", "2026-01-02T03:04:05.5Z"]),
    r"^(19[7-9]\d|20\d\d)-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$": (
        ["1970-01-01T00:00:00Z", "2099-12-31T23:59:59.123456789Z"],
        ["2100-01-01T00:00:00Z", "2026-01-02T03:04:05.1234567890Z"]),
    None: (["2026-01-02T03:04:05Z", "2026-01-02T03:04:05." + "0" * 43 + "Z"], []),
}
# Said of the second of two equal items.
TWICE = "Duplicate value"


# ---- The cases of one field: (value, what the API server says; None: it takes the value).


def _strings(schema):
    pattern = schema.get("pattern")
    if "enum" in schema:
        yield from ((value, None) for value in schema["enum"])
        yield "Unknown to all", "Unsupported value"
        return
    most = schema.get("maxLength")
    if schema.get("format") == "date-time":
        right, wrong = TIMES[pattern]
        yield from ((value, None) for value in right)
        yield from ((value, "should match") for value in wrong)
        yield "soon", "must be of type date-time"
    else:
        assert "format" not in schema, schema
        text, least = TEXTS[pattern], schema.get("minLength", 0)
        yield from ((text(length), None) for length in dict.fromkeys([least, most]))
        if least > 0:
            yield text(least)[1:], f"should be at least {least} chars long"
        if pattern:
            yield " " * least, "should match"
    if most:
        yield "x" * (most + 1), "Too long"


def _integers(schema):
    for border, beyond, words in (("minimum", -1, "greater"), ("maximum", 1, "less")):
        if border in schema:
            yield schema[border], None
            yield schema[border] + beyond, f"should be {words} than or equal to {schema[border]}"
    yield 1.5, "must be of type integer"
    if not {"minimum", "maximum"} & schema.keys():
        yield 1, None  # a rule in CEL has the limits


def _arrays(schema):
    least, most = schema.get("minItems", 0), schema["maxItems"]
    yield from (([_item(schema, number) for number in range(count)], None) for count in dict.fromkeys([least, most]))
    if least > 0:
        yield [_item(schema, number) for number in range(least - 1)], f"should have at least {least} items"
    yield [_item(schema, number) for number in range(most + 1)], "Too many"
    if schema.get("x-kubernetes-list-type") in ("map", "set"):
        yield [_item(schema, 0)] * 2, TWICE


VALUES = {
    "string": _strings,
    "integer": _integers,
    "array": _arrays,
    "boolean": lambda _: [(True, None), (False, None)],
    "object": lambda _: [],
}


def _cases(schema, is_required):
    yield from VALUES[schema["type"]](schema)
    yield _of_another_type(schema)
    yield MISSING, "Required value" if is_required and "default" not in schema else None


def _of_another_type(schema):
    kind = schema["type"]
    said = schema.get("format", kind) if kind == "string" else kind
    return OTHER_TYPE[kind], f"must be of type {said}"


# ---- Whole objects.


def whole(schema, name=""):
    """A value with each field that the schema knows, and one item in each list."""
    if name == "template":
        return copy.deepcopy(TEMPLATE)
    if schema["type"] == "object":
        return {key: whole(field, key) for key, field in schema["properties"].items()}
    if schema["type"] == "array":
        return [_item(schema, number) for number in range(max(1, schema.get("minItems", 0)))]
    return next(value for value, error in VALUES[schema["type"]](schema) if error is None and value != "")


def _item(schema, number):
    """One item of a list, with keys that no other number has."""
    item = whole(schema["items"])
    kind = schema.get("x-kubernetes-list-type")
    if kind == "set":
        return _distinct(schema["items"], number)
    for key in schema.get("x-kubernetes-list-map-keys", []):
        item[key] = _distinct(schema["items"]["properties"][key], number)
    return item


def _distinct(schema, number):
    return schema.get("minimum", 0) + number if schema["type"] == "integer" else str(number)


def fields(schema, path):
    """(path, schema, whether the object around it needs it) of each field below `path`."""
    for name, field in schema.get("properties", {}).items():
        yield (*path, name), field, name in schema.get("required", [])
        if name != "template":
            yield from fields(field, (*path, name))
    if "items" in schema:
        yield (*path, 0), schema["items"], False
        yield from fields(schema["items"], (*path, 0))


def text_of(path):
    """As the API server names a field: spec.stages[0].name."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def _put(body, path, value):
    for part in path[:-1]:
        body = body[part]
    if value is MISSING:
        del body[path[-1]]
    else:
        body[path[-1]] = value


# ---- Rounds.

MOST_BYTES = 2_000_000  # the API server takes requests of 3 MiB
BLOCKING = re.compile("must be of type|Unsupported value|Required value|Too long|Too many")
# With this field the API server says that it has left out the rules in CEL.
NO_FIELD = "<nil>"


class _Round:
    def __init__(self):
        self.cases = {}  # by path
        self.parents = set()
        self.size = 0

    def takes(self, path, size):
        """No case of this round replaces what another one stands in, and the request stays below a limit."""
        above = {path[:length] for length in range(1, len(path) + 1)}
        return self.size + size < MOST_BYTES and path not in self.parents and not above & self.cases.keys()

    def add(self, path, value, error, size=0):
        self.cases[path] = (value, error)
        self.size += size
        self.parents |= {path[:length] for length in range(1, len(path))}


def rounds(schema, part):
    """[(the part of the object with many changes, {field: what the API server says of it})]"""
    found, all_fields = [], list(fields(schema, (part,)))
    for number, (path, field, is_required) in enumerate(all_fields):
        cases = list(_cases(field, is_required))
        turn = number % len(cases)  # so that right and wrong values meet in a round
        for value, error in cases[turn:] + cases[:turn]:
            if isinstance(path[-1], int) and value is MISSING:
                continue  # the lists have their own borders
            size = 0 if value is MISSING else len(json.dumps(value))
            fitting = next((round_ for round_ in found if round_.takes(path, size)), None)
            if fitting is None:
                fitting = _Round()
                found.append(fitting)
            fitting.add(path, value, error, size)
    for round_ in found:
        if not any(BLOCKING.search(error or "") for _, error in round_.cases.values()):
            path, field = next((path, field) for path, field, _ in all_fields if round_.takes(path, 0))
            round_.add(path, *_of_another_type(field))
    return [_made(schema, part, round_.cases) for round_ in found]


def _made(schema, part, cases):
    body = {part: whole(schema)}
    for path, (value, _) in cases.items():
        _put(body, path, value)
    return body[part], {text_of((*path, 1) if error == TWICE else path): error
                        for path, (_, error) in cases.items() if error}


def surprises(wrong, answer):
    """What the API server says that it should not, or does not say."""
    said = {}
    for cause in answer.get("details", {}).get("causes", []):
        # The scale subresource writes its fields with a dot in front.
        said.setdefault(cause["field"].lstrip("."), []).append(cause["message"])
    found = [f"{field}: {messages}" for field, messages in said.items() if field not in {NO_FIELD, *wrong}]
    return found + [f"{field}: not {error!r} but {said.get(field)}" for field, error in wrong.items()
                    if not any(error in message for message in said.get(field, []))]


def with_unknown(value, path):
    """The value with a field `unknown` in each of its objects but in templates, and the names of these fields."""
    names = []
    if isinstance(value, dict):
        found = {}
        for key, field in value.items():
            found[key], more = (field, []) if key == "template" else with_unknown(field, (*path, key))
            names += more
        return found | {"unknown": 1}, [*names, text_of((*path, "unknown"))]
    if isinstance(value, list):
        found = []
        for place, item in enumerate(value):
            item, more = with_unknown(item, (*path, place))
            found.append(item)
            names += more
        return found, names
    return value, names
