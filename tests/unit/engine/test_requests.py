"""What pods ask for (docs/spec/algorithm.md 0.3, 1.10, 1.11)."""

from fractions import Fraction
from typing import Any

import pytest

from sluice.api import wire
from sluice.api.names import ResourceName
from sluice.api.records import LimitRange, LimitRangeItem, RuntimeClass
from sluice.engine.options import Transformation, TransformationStrategy
from sluice.engine.requests import RequestRules, resource_order

NS = "ns"


def container(requests: dict[str, str], limits: dict[str, str] | None = None, **extra: Any) -> Any:
    return {"name": "c", "resources": {"requests": requests, "limits": limits or {}}, **extra}


def pod(*containers: Any, inits: list[Any] | None = None, **spec: Any) -> Any:
    return wire.template({"containers": list(containers), "initContainers": inits or [], **spec})


def ask(template: Any, rules: RequestRules | None = None) -> dict[str, int]:
    found = (rules or RequestRules((), ())).of(template, NS)
    return dict(zip(found.names, found.amounts, strict=True))


def test_0_3_resources_are_ordered_by_the_hash_of_their_names() -> None:
    ascending = [
        "ephemeral-storage",
        "amd.com/gpu",
        "memory",
        "nvidia.com/gpu",
        "pods",
        "hugepages-1Gi",
        "example.com/gpu",
        "hugepages-2Mi",
        "google.com/tpu",
        "cpu",
    ]

    assert sorted(sorted(ascending), key=resource_order) == ascending


@pytest.mark.parametrize(
    ("template", "cpu"),
    [
        pytest.param(pod(container({"cpu": "1"}), container({"cpu": "500m"})), 1500, id="sum"),
        pytest.param(
            pod(container({"cpu": "1"}), inits=[container({"cpu": "3"})]), 3000, id="init peak"
        ),
        pytest.param(
            pod(
                container({"cpu": "1"}),
                inits=[
                    container({"cpu": "2"}, restartPolicy="Always"),
                    container({"cpu": "2"}),
                ],
            ),
            4000,
            id="init after a sidecar",
        ),
        pytest.param(
            pod(
                container({"cpu": "1"}),
                inits=[
                    container({"cpu": "2"}),
                    container({"cpu": "2"}, restartPolicy="Always"),
                ],
            ),
            3000,
            id="sidecar beside the containers",
        ),
        pytest.param(
            pod(container({"cpu": "1"}), resources={"requests": {"cpu": "5"}}), 5000, id="pod level"
        ),
        pytest.param(pod(container({"cpu": "1"}), overhead={"cpu": "250m"}), 1250, id="overhead"),
        pytest.param(pod(container({}, {"cpu": "2"})), 2000, id="limit without request"),
        pytest.param(pod(container({"cpu": "1u"})), 1, id="rounded up"),
        pytest.param(pod(container({"cpu": "-1"})), 0, id="never negative"),
    ],
)
def test_1_10_effective_requests(template: Any, cpu: int) -> None:
    assert ask(template) == {"cpu": cpu}


def test_1_10_pod_level_requests_replace_only_some_resources() -> None:
    template = pod(container({"gpu": "2"}), resources={"requests": {"gpu": "9", "memory": "1"}})

    assert ask(template) == {"gpu": 2, "memory": 1}


def test_1_10_a_runtime_class_gives_overhead_unless_the_pod_has_its_own() -> None:
    rules = RequestRules((), ())
    rules.set_runtime_class(RuntimeClass(name="vm", overhead=((ResourceName("cpu"), "1"),)))
    given = container({"cpu": "1"})
    plain = pod(given, runtimeClassName="vm")

    assert ask(plain, rules) == {"cpu": 2000}
    own = pod(given, runtimeClassName="vm", overhead={"cpu": "100m"})
    assert ask(own, rules) == {"cpu": 1100}
    rules.drop_runtime_class("vm")
    assert ask(plain, rules) == {"cpu": 1000}


CPU = ResourceName("cpu")


def limit_range(name: str, kind: str = "Container", **bounds: str) -> LimitRange:
    given = {field: ((CPU, value),) for field, value in bounds.items()}
    return LimitRange(namespace=NS, name=name, items=(LimitRangeItem(type=kind, **given),))


def test_1_10_limit_ranges_fill_in_the_first_default_seen() -> None:
    rules = RequestRules((), ())
    rules.set_limit_range(limit_range("b", default_request="3", default="4"))
    rules.set_limit_range(limit_range("a", default_request="2"))

    assert ask(pod(container({})), rules) == {"cpu": 2000}
    assert ask(pod(container({"cpu": "1"})), rules) == {"cpu": 1000}
    rules.drop_limit_range(NS, "a")
    assert ask(pod(container({})), rules) == {"cpu": 3000}
    rules.drop_limit_range(NS, "b")
    assert ask(pod(container({})), rules) == {}


def test_1_10_pod_level_defaults_need_the_block() -> None:
    rules = RequestRules((), ())
    rules.set_limit_range(limit_range("a", "Pod", default_request="2"))

    assert ask(pod(container({"memory": "1"})), rules) == {"memory": 1}
    with_block = pod(container({"memory": "1"}), resources={})
    assert ask(with_block, rules) == {"memory": 1, "cpu": 2000}


@pytest.mark.parametrize(
    ("bounds", "template", "text"),
    [
        ({"max": "1"}, pod(container({"cpu": "2"})), "more cpu than the maximum"),
        ({"min": "3"}, pod(container({"cpu": "2"})), "less cpu than the minimum"),
        ({"max": "2", "min": "2"}, pod(container({"cpu": "2"})), ""),
        ({"max": "3"}, pod(container({"cpu": "2"}, {"cpu": "4"})), "more cpu than the maximum"),
    ],
)
def test_1_11_limit_ranges_forbid(bounds: dict[str, str], template: Any, text: str) -> None:
    rules = RequestRules((), ())
    rules.set_limit_range(limit_range("a", **bounds))

    problem = rules.of(template, NS).problem
    assert (text in problem) if text else not problem


def test_1_11_limit_ranges_of_pods_hold_for_the_total() -> None:
    rules = RequestRules((), ())
    rules.set_limit_range(limit_range("a", "Pod", max="3"))

    assert (
        "pod asks for more cpu"
        in rules.of(pod(container({"cpu": "2"}), container({"cpu": "2"})), NS).problem
    )


@pytest.mark.parametrize(
    ("template", "what"),
    [
        (pod(container({"cpu": "2"}, {"cpu": "1"})), "container 'c'"),
        (
            pod(container({}), inits=[container({"cpu": "2"}, {"cpu": "1"})]),
            "init container 'c'",
        ),
        (
            pod(container({}), resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
            "pod-level resources",
        ),
    ],
)
def test_1_11_no_request_above_its_own_limit(template: Any, what: str) -> None:
    problem = RequestRules((), ()).of(template, NS).problem

    assert problem == f"resources validation failed: {what} requests more cpu than its limit"


def test_1_10_excluded_prefixes_are_not_counted_but_stay_in_the_raw_requests() -> None:
    rules = RequestRules(("networking.example.com/",), ())
    template = pod(container({"cpu": "1", "networking.example.com/vpc": "1"}))

    assert ask(template, rules) == {"cpu": 1000}
    assert rules.of(template, NS).raw == (("cpu", 1000), ("networking.example.com/vpc", 1))


def transform(strategy: str, multiply_by: str | None = None, **outputs: str) -> RequestRules:
    rule = Transformation(
        input=ResourceName("mig"),
        strategy=TransformationStrategy(strategy),
        outputs=tuple((ResourceName(n), Fraction(v)) for n, v in outputs.items()),
        multiply_by=ResourceName(multiply_by) if multiply_by else None,
    )
    return RequestRules((), (rule,))


@pytest.mark.parametrize(
    ("rules", "requests", "found"),
    [
        (transform("Replace", gpu_mem="5"), {"mig": "2"}, {"gpu_mem": 10}),
        (transform("Retain", gpu_mem="5"), {"mig": "2"}, {"mig": 2, "gpu_mem": 10}),
        (transform("Replace", gpu_mem="0.4"), {"mig": "2"}, {"gpu_mem": 1}),
        (transform("Replace", gpu_mem="5"), {"cpu": "1"}, {"cpu": 1000}),
        (transform("Replace", gpu_mem="5"), {"mig": "2", "gpu_mem": "1"}, {"gpu_mem": 11}),
        (transform("Replace", "n", gpu_mem="5"), {"mig": "2", "n": "3"}, {"n": 3, "gpu_mem": 30}),
        (transform("Replace", "n", gpu_mem="5"), {"mig": "2"}, {"gpu_mem": 10}),
        (transform("Replace", gpu_mem="-5"), {"mig": "2", "cpu": "1"}, {"cpu": 1000, "gpu_mem": 0}),
    ],
)
def test_1_10_transformations(
    rules: RequestRules, requests: dict[str, str], found: dict[str, int]
) -> None:
    assert ask(pod(container(requests)), rules) == found


def test_2_7_shape_tells_requests_apart_but_neither_names_nor_limits() -> None:
    rules = RequestRules((), ())
    base = rules.of(pod(container({"cpu": "1"})), NS).shape
    renamed = {**container({"cpu": "1"}, {"cpu": "2"}), "name": "other", "image": "x"}

    assert rules.of(pod(renamed), NS).shape == base
    assert rules.of(pod(container({"cpu": "2"})), NS).shape != base
    assert rules.of(pod(container({"cpu": "1"}), nodeSelector={"a": "b"}), NS).shape != base
    # A limit stands in for a missing request before the shape is taken.
    assert rules.of(pod(container({}, {"cpu": "1"})), NS).shape == base
