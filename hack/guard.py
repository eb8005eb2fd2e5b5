"""Places the rules of a kind: in policies (ValidatingAdmissionPolicy) those on the whole object, its spec and its status.

In the CRD such a rule is dear: at each look at one field the API server copies the schemas of all fields beside it, and
it evaluates the rules of spec and status alike at every write of either. A policy reads the object without a schema,
and is asked only for the writes that it is for. In the CRD stay:
- the rules below spec and status: they are cheap, and do not see 30 fields beside theirs;
- what is marked `x-holdfast-core: true`. It holds even where the policies are missing, and for what nobody can repair
  later.

An object that breaks a rule, because it was made while there was no policy, can still be cancelled, suspended and
deleted: a rule that does not look at the old object passes if only that has changed. So does the CRD (ratcheting).
"""

import re

CORE = "x-holdfast-core"
RULES = "x-kubernetes-validations"

# A string, or a name that is no field of another.
TOKEN = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?<![.\w])(self|oldSelf)\b""")


SAME = {"name": "same", "expression":
        "oldObject != null && oldObject.spec.all(field, field in object.spec) && object.spec.all(field, "
        "field in ['cancel', 'suspend'] || (field in oldObject.spec && object.spec[field] == oldObject.spec[field]))"}


def _on(place, text):
    """A rule's expression for a policy. `place`: "", ".spec" or ".status"."""
    names = {"self": f"object{place}", "oldSelf": f"oldObject{place}"}
    return TOKEN.sub(lambda found: found[1] or names[found[2]], text)


def _validation(place, rule, creates):
    """`creates`: the policy is asked for creations too. The CRD asks a rule with oldSelf for updates alone."""
    text = rule["rule"]
    is_transition = any(found[2] == "oldSelf" for found in TOKEN.finditer(text))
    expression = _on(place, text)
    if creates:
        passes = "oldObject == null" if is_transition else f"variables.{SAME['name']}"
        expression = f"{passes} || ({expression})"
    # A refusal by a policy names neither field nor reason, so the message does, as the CRD's refusal.
    field = f"{place}{rule.get('fieldPath', '')}".removeprefix(".")
    named = f"{field}: {WORDS.get(rule.get('reason'), '')}"
    validation = {"expression": expression, "reason": "Invalid", "message": named + rule["message"]}
    if "messageExpression" in rule:
        validation["messageExpression"] = f"'{named}' + {_on(place, rule['messageExpression'])}"
    return validation


# `reason` says how a CRD's refusal names the field, and has no place in a policy: each refusal is Invalid (422).
WORDS = {"FieldValueForbidden": "Forbidden: ", "FieldValueRequired": "Required value: "}
KNOWN = {"rule", "message", "messageExpression", "fieldPath", "reason", CORE}


def _take(schema):
    """Removes the rules that do not stay from a schema."""
    rules = schema.get(RULES, [])
    for rule in rules:
        assert set(rule) <= KNOWN, f"no policy can say {set(rule) - KNOWN}: {rule['rule']}"
    kept = [{key: value for key, value in rule.items() if key != CORE} for rule in rules if rule.get(CORE)]
    if kept:
        schema[RULES] = kept
    else:
        schema.pop(RULES, None)
    # A policy says the first broken rule alone. That something must not change says more than what it would then need.
    return sorted((rule for rule in rules if not rule.get(CORE)), key=lambda rule: rule.get("reason") != "FieldValueForbidden")


def _objects(crd, version, resource, operations, validations, variables=()):
    name = f"holdfast-guard-{crd['spec']['names']['singular']}" + ("-status" if resource.endswith("/status") else "")
    # All that the API server would add is here, so that the operator can compare what it finds with what was shipped.
    constraints = {
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "resourceRules": [{"apiGroups": [crd["spec"]["group"]], "apiVersions": [version], "operations": operations,
                           "resources": [resource], "scope": "*"}]}
    return [
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
         "metadata": {"name": name},
         "spec": {"failurePolicy": "Fail", "matchConstraints": constraints,
                  **({"variables": list(variables)} if variables else {}), "validations": validations}},
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
         "metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}}]


def split(crd):
    """Takes the rules that are for policies out of this definition, and returns the policies with their bindings."""
    (version,) = crd["spec"]["versions"]
    root = version["schema"]["openAPIV3Schema"]
    whole = _take(root)
    on_spec, on_status = (_take(root["properties"][name]) for name in ("spec", "status"))
    assert CORE not in str(crd), f"{CORE} is for rules on the whole object, its spec and its status"
    of_status = [rule for rule in whole if rule["fieldPath"].startswith(".status")]
    main = [_validation("", rule, True) for rule in whole if rule not in of_status]
    main += [_validation(".spec", rule, True) for rule in on_spec]
    status = [_validation("", rule, False) for rule in of_status]
    status += [_validation(".status", rule, False) for rule in on_status]
    resource = crd["spec"]["names"]["plural"]
    return [*_objects(crd, version["name"], resource, ["CREATE", "UPDATE"], main, [SAME]),
            *_objects(crd, version["name"], f"{resource}/status", ["UPDATE"], status)]
