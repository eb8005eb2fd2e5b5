"""At start the operator says whether the API server itself fences workers."""

from fence import install_fence
from holdfast import Operator
from localcluster import wait_for


def wait_said(operator, words):
    wait_for(f"{words!r} in the log", lambda: words in operator.log(), 60)


def test_whether_there_is_a_fence_is_said_at_start(cluster):
    with Operator(cluster) as operator:
        wait_said(operator, "there is no fence in the API server: its policy is not installed")
        assert "see=docs/fence-messages.md" in operator.log()
    install_fence(cluster, ["default"])
    with Operator(cluster) as operator:
        wait_said(operator, "there is a fence in the API server")
