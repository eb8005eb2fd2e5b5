"""Places the rules of a kind: in policies (ValidatingAdmissionPolicy) those on the whole object, its spec and its
status, and on their fields.

In the CRD such a rule is dear: at each look at one field the API server copies the schemas of all fields beside it, and
it evaluates the rules of spec and status alike at every write of either. A policy reads the object without a schema,
and is asked only for the writes that it is for. In the CRD stay:
- the rules further below: those on the members of lists and of objects, which most jobs do not have;
- what is marked `x-holdfast-core: true`. It holds even where the policies are missing, and for what nobody can repair
  later.

An expression costs the API server some 8 KB and 7 us before it has looked at anything. So a policy has one for all its
rules: the variable `broken`, which is the message of the first broken rule, or empty. (The API server evaluates it
twice: for a message it asks even where nothing is broken.)

An expression also has a limit on its cost. A rule that needs much of that for the longest lists has a variable of its
own. It is marked `x-holdfast-dear`, with a cheap expression that says where the rule is met in any case.

An object that breaks a rule, because it was made while there was no policy, can still be cancelled, suspended and
deleted: a rule that does not look at the old object passes if only that has changed. So does the CRD (ratcheting).
"""

import re

CORE = "x-holdfast-core"
DEAR = "x-holdfast-dear"
OURS = (CORE, DEAR)
RULES = "x-kubernetes-validations"

# A string, or a name that is no field of another.
TOKEN = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?<![.\w])(self|oldSelf)\b""")
# Up to a space that is in no string.
WORD = re.compile(r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s'"])+""")
WIDTH = 105

BROKEN = "broken"
SAME = {"name": "same", "expression":
        "oldObject != null && oldObject.spec.all(field, field in object.spec) && object.spec.all(field, "
        "field in ['cancel', 'suspend'] || (field in oldObject.spec && object.spec[field] == oldObject.spec[field]))"}


def _on(place, text):
    """A rule's expression for a policy. `place`: "", ".spec", ".status", or a field of these."""
    names = {"self": f"object{place}", "oldSelf": f"oldObject{place}"}
    return TOKEN.sub(lambda found: found[1] or names[found[2]], text)


def _case(place, rule, is_field, creates):
    """{"met": what a right object meets, "message": what a refusal says, where that is computed "messageExpression",
    and for a dear rule "sooner": what is asked before it}. `creates`: the policy is asked for creations too. The CRD
    asks a rule with oldSelf for updates alone. `is_field`: the rule is asked where the field is there, and one with
    oldSelf where it was there, too."""
    text = rule["rule"]
    is_transition = any(found[2] == "oldSelf" for found in TOKEN.finditer(text))
    passes = []
    if creates:
        passes.append("oldObject == null" if is_transition else f"variables.{SAME['name']}")
    if is_field:
        passes += [f"!has(object{place})"] + ([f"!has(oldObject{place})"] if is_transition else [])
    # A refusal by a policy names neither field nor reason, so the message does, as the CRD's refusal.
    field = f"{place}{rule.get('fieldPath', '')}".removeprefix(".")
    named = f"{field}: {WORDS.get(rule.get('reason'), '')}"
    case = {"met": " || ".join([*passes, f"({_on(place, text)})"]), "message": named + rule["message"]}
    if DEAR in rule:
        case["sooner"] = " || ".join([*passes, _on(place, rule[DEAR])])
    if "messageExpression" in rule:
        case["messageExpression"] = f"{_quoted(named)} + ({_on(place, rule['messageExpression'])})"
    return case


def _quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _variables(cases):
    """`broken`, an expression: what the first case that is not met says, or nothing. Before it, the dear ones."""
    variables, lines = [], []
    for case in cases:
        met = case["met"]
        if "sooner" in case:
            variables.append({"name": f"rule{len(variables) + 1}", "expression": _wrapped(met)})
            met = f"{case['sooner']} || variables.{variables[-1]['name']}"
        message = case.get("messageExpression") or _quoted(case["message"])
        lines += [_wrapped(f"!({met})"), f"  ? {message} :"]
    return [*variables, {"name": BROKEN, "expression": "\n".join([*lines, "''"])}]


def _wrapped(expression):
    """In lines, none of which ends within a string."""
    lines = [""]
    for word in WORD.findall(expression):
        if len(lines[-1]) + len(word) > WIDTH:
            lines.append("   ")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(lines)


# `reason` says how a CRD's refusal names the field, and has no place in a policy: each refusal is Invalid (422).
WORDS = {"FieldValueForbidden": "Forbidden: ", "FieldValueRequired": "Required value: "}
KNOWN = {"rule", "message", "messageExpression", "fieldPath", "reason", *OURS}


def for_crd(rule):
    """The rule without our own marks, which no CRD may have."""
    return {key: value for key, value in rule.items() if key not in OURS}


def _take(schema, place, is_field=False):
    """Removes the rules that do not stay from a schema: [(place, rule, is_field)] in the order in which they are asked.
    A policy says the first broken rule alone. That something must not change says more than what it would then need."""
    rules = schema.get(RULES, [])
    for rule in rules:
        assert set(rule) <= KNOWN, f"no policy can say {set(rule) - KNOWN}: {rule['rule']}"
    kept = [for_crd(rule) for rule in rules if rule.get(CORE)]
    if kept:
        schema[RULES] = kept
    else:
        schema.pop(RULES, None)
    taken = [rule for rule in rules if not rule.get(CORE)]
    ordered = sorted(taken, key=lambda rule: rule.get("reason") != "FieldValueForbidden")
    return [(place, rule, is_field) for rule in ordered]


def _take_fields(part, place):
    """The same of all fields of spec or status."""
    return [rule for name, field in part["properties"].items() for rule in _take(field, f"{place}.{name}", is_field=True)]


def _objects(crd, resource, operations, cases):
    name = f"holdfast-guard-{crd['spec']['names']['singular']}" + ("-status" if resource.endswith("/status") else "")
    same = [SAME] if "CREATE" in operations else []
    # All that the API server would add is here, so that the operator can compare what it finds with what was shipped.
    constraints = {
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "resourceRules": [{
            "apiGroups": [crd["spec"]["group"]], "apiVersions": [crd["spec"]["versions"][0]["name"]],
            "operations": operations, "resources": [resource], "scope": "*"}]}
    validation = {"expression": f"variables.{BROKEN} == ''", "reason": "Invalid",
                  "message": "the object breaks a rule of this policy: see its variable broken",
                  "messageExpression": f"variables.{BROKEN}"}
    return [
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
         "metadata": {"name": name},
         "spec": {"failurePolicy": "Fail", "matchConstraints": constraints,
                  "variables": [*same, *_variables(cases)],
                  "validations": [validation]}},
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
         "metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}}]


def take(crd):
    """Takes the rules that are for policies out of this definition: [(resource, operations, cases in their order)].
    What is wrong with one field comes first: it says most."""
    (version,) = crd["spec"]["versions"]
    root = version["schema"]["openAPIV3Schema"]
    whole = _take(root, "")
    of_status = [found for found in whole if found[1]["fieldPath"].startswith(".status")]
    of_main = [found for found in whole if found not in of_status]
    rules = {}
    for name, on_whole in (("spec", of_main), ("status", of_status)):
        part = root["properties"][name]
        rules[name] = _take_fields(part, f".{name}") + on_whole + _take(part, f".{name}")
    left = [mark for mark in OURS if mark in str(crd)]
    assert not left, f"{left} are for rules on the whole object, its spec, its status and their fields"
    resource = crd["spec"]["names"]["plural"]
    return [(resource, ["CREATE", "UPDATE"], [_case(*rule, creates=True) for rule in rules["spec"]]),
            (f"{resource}/status", ["UPDATE"], [_case(*rule, creates=False) for rule in rules["status"]])]


def split(crd):
    """Takes the rules that are for policies out of this definition, and returns the policies with their bindings."""
    return [made for taken in take(crd) for made in _objects(crd, *taken)]
