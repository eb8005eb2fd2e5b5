"""What the operator is granted."""

import yaml
from holdfast import RBAC_PATH


def granted():
    """(group, resource, verb, namespace), with "" for the namespace of a ClusterRole."""
    rights = set()
    for role in yaml.safe_load_all(RBAC_PATH.read_text()):
        for rule in role.get("rules", []):
            rights |= {(group, resource, verb, role["metadata"].get("namespace", ""))
                       for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]}
    return rights
