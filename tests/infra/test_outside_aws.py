"""The files for a job outside AWS: the unit of systemd, the manifests of Kubernetes, and the container file. No engine runs them
here. The tests read them strictly, and ask the tools that are there: systemd-analyze and kubectl."""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from processor.cli.process import END_SECONDS
from processor.environment.settings.settings import read_settings
from processor.job.metrics.status_page import CONNECTION_SECONDS
from tests.support.required import required_program

ROOT = Path(__file__).parents[2]
INFRA = ROOT / "infra"
UNIT = INFRA / "systemd" / "statestore@.service"
CONTAINER = INFRA / "container"
KUBERNETES = INFRA / "kubernetes"
PORT = 9464
USER = 10001


def instructions() -> list[tuple[str, str]]:
    """The instructions of the container file, each with its words, in their order."""
    text = re.sub(r"^#.*\n", "", (CONTAINER / "Containerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines if line.strip()]


def words(name: str) -> list[str]:
    """The words of all instructions of this name."""
    return [text for found, text in instructions() if found == name]


def unit() -> dict[str, dict[str, list[str]]]:
    """The sections of the unit. A key may come several times."""
    sections: dict[str, dict[str, list[str]]] = {}
    for line in UNIT.read_text(encoding="utf-8").splitlines():
        if found := re.fullmatch(r"\[(\w+)\]", line):
            section = sections.setdefault(found[1], {})
        elif line and not line.startswith("#"):
            name, _, value = line.partition("=")
            section.setdefault(name, []).append(value)
    return sections


def manifests() -> dict[str, Any]:
    """The manifests by kind."""
    documents = list(YAML(typ="safe").load_all(KUBERNETES / "statestore.yaml"))
    return {document["kind"]: document for document in documents}


@pytest.fixture
def pod() -> Any:
    """What the StatefulSet says of its pod."""
    return manifests()["StatefulSet"]["spec"]["template"]["spec"]


def test_systemd_starts_a_job_again_unless_it_was_stopped_or_its_command_line_is_wrong() -> None:
    service = unit()["Service"]
    assert service["Restart"] == ["on-failure"]  # 0 is a stop by a signal
    assert service["RestartPreventExitStatus"] == ["2"]  # wrong usage
    assert unit()["Unit"]["StartLimitIntervalSec"] == ["0"]


def test_systemd_and_kubernetes_wait_longer_than_a_stop_takes(pod: Any) -> None:
    (seconds,) = (int(text.removesuffix("s")) for text in unit()["Service"]["TimeoutStopSec"])
    assert min(seconds, pod["terminationGracePeriodSeconds"]) > 2 * END_SECONDS


@pytest.mark.parametrize("folder", ["bin", "two words", "100%n"])
def test_systemd_finds_no_fault_in_the_unit(tmp_path: Path, folder: str) -> None:
    """The command of the unit is that of this environment, wherever a checkout lies: systemd looks whether it exists."""
    analyze = required_program("systemd-analyze", "apt-get install -y systemd")
    command = tmp_path / folder / "statestore"
    command.parent.mkdir()
    command.symlink_to(Path(sys.executable).with_name("statestore"))
    text = UNIT.read_text(encoding="utf-8")
    own = text.replace("/opt/statestore/bin/statestore", unit_word(str(command)))
    assert own != text
    file = tmp_path / UNIT.name
    file.write_text(own)
    done = subprocess.run([analyze, "verify", "--man=no", str(file)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def unit_word(text: str) -> str:
    """The text as a word of a command in a unit."""
    return f'"{text.replace("%", "%%")}"'


def test_the_command_of_each_way_is_one_that_the_verb_takes() -> None:
    from processor.cli.main import CommandParser

    (start,) = unit()["Service"]["ExecStart"]
    parser = CommandParser(prog="statestore")
    parser.add_verbs()
    for command in (shlex.split(start)[1:], _array(words("CMD")[0])):
        options = parser.parse_args(command)
        assert (options.verb, int(options.status_port)) == ("run", PORT)


def _array(text: str) -> list[str]:
    found = YAML(typ="safe").load(text)
    assert isinstance(found, list), f"{text}: a shell would get SIGTERM in the place of the job"
    return found


def test_the_image_starts_the_job_below_an_init_and_as_a_user_without_rights(pod: Any) -> None:
    assert _array(words("ENTRYPOINT")[0]) == ["tini", "--", "statestore"]
    assert words("USER") == [f"{USER}:{USER}"]
    assert f"--uid {USER} " in " ".join(words("RUN"))
    assert (pod["securityContext"]["runAsUser"], pod["securityContext"]["fsGroup"]) == (USER, USER)
    assert words("EXPOSE") == [str(PORT)]


def test_every_instruction_of_the_container_file_is_known_and_its_images_have_a_version() -> None:
    known = {"FROM", "RUN", "WORKDIR", "COPY", "ENV", "USER", "EXPOSE", "ENTRYPOINT", "CMD"}
    assert {name for name, _ in instructions()} <= known
    assert [image for image in words("FROM") if not re.match(r"[a-z/]+:\d+\.\d+[\w.-]*( AS \w+)?$", image)] == []


def test_every_file_that_the_image_gets_is_in_the_checkout_and_in_the_context_of_the_build() -> None:
    sources = [source for text in words("COPY") if "--from" not in text for source in text.split()[:-1]]
    assert len(sources) > 8
    assert [source for source in sources if not (ROOT / source).exists()] == []
    ignored = (CONTAINER / "Containerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    let_in = [line[1:] for line in ignored if line.startswith("!")]
    assert "*" in ignored
    assert [source for source in sources if not any(Path(source).is_relative_to(one) for one in let_in)] == []


def test_every_file_that_the_install_script_reads_is_in_the_image() -> None:
    script = (CONTAINER / "install.sh").read_text(encoding="utf-8")
    named = set(re.findall(r"infra/[\w./-]+\.txt", script))
    copied = {source for text in words("COPY") for source in text.split()[:-1]}
    assert named == {one for one in copied if one.endswith(".txt")}
    assert "infra/container/install.sh" in copied
    assert subprocess.run(["sh", "-n", str(CONTAINER / "install.sh")], check=False).returncode == 0


def test_the_spark_of_the_image_is_that_of_the_tests_and_has_a_hash() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (tested,) = [one for one in project["optional-dependencies"]["dev"] if one.startswith("pyspark==")]
    lines = (CONTAINER / "spark.txt").read_text(encoding="utf-8").splitlines()
    pinned = [line for line in lines if not line.startswith("#")]
    assert pinned[0].split()[0] == tested.split(";")[0]
    assert all(re.fullmatch(r"\S+==\S+ --hash=sha256:[0-9a-f]{64}", line) for line in pinned)


def test_one_pod_runs_the_job_and_its_checkpoint_stays() -> None:
    spec = manifests()["StatefulSet"]["spec"]
    assert spec["replicas"] == 1
    (claim,) = spec["volumeClaimTemplates"]
    assert claim["spec"]["accessModes"] == ["ReadWriteOncePod"]
    settings = read_settings({}, {}, str(KUBERNETES / "settings.toml"))
    mounts = {one["name"]: one["mountPath"] for one in spec["template"]["spec"]["containers"][0]["volumeMounts"]}
    assert Path(settings.checkpoint).is_relative_to(mounts[claim["metadata"]["name"]])


def test_a_pod_for_which_a_person_must_act_is_not_ready_but_lives_and_shows_its_metrics(pod: Any) -> None:
    (container,) = pod["containers"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/health"
    assert container["livenessProbe"]["httpGet"]["path"] == "/status.json"
    assert all(container[f"{name}Probe"]["timeoutSeconds"] <= CONNECTION_SECONDS for name in ("readiness", "liveness"))
    assert manifests()["Service"]["spec"]["publishNotReadyAddresses"] is True


def test_every_name_in_the_manifests_leads_to_something(pod: Any) -> None:
    found = manifests()
    (container,) = pod["containers"]
    claims = {claim["metadata"]["name"] for claim in found["StatefulSet"]["spec"]["volumeClaimTemplates"]}
    assert {one["name"] for one in container["volumeMounts"]} == claims | {one["name"] for one in pod["volumes"]}
    assert container["ports"] == [{"name": "status", "containerPort": PORT}]
    (port,) = found["Service"]["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (PORT, "status")
    label = pod_labels = found["StatefulSet"]["spec"]["template"]["metadata"]["labels"]
    assert found["StatefulSet"]["spec"]["selector"]["matchLabels"] == pod_labels
    assert found["Service"]["spec"]["selector"] == label
    assert found["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == label
    assert found["StatefulSet"]["spec"]["serviceName"] == found["Service"]["metadata"]["name"]
    kustomization = YAML(typ="safe").load(KUBERNETES / "kustomization.yaml")
    (generated,) = kustomization["configMapGenerator"]
    maps = [volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume]
    assert ([generated["name"]], generated["files"]) == (maps, ["settings.toml"])
    assert [image["name"] for image in kustomization["images"]] == [container["image"]]


KNOWN = {
    "Service": {"spec": {"clusterIP", "publishNotReadyAddresses", "selector", "ports"}},
    "NetworkPolicy": {"spec": {"podSelector", "policyTypes", "ingress"}},
    "StatefulSet": {
        "spec": {"serviceName", "replicas", "selector", "template", "volumeClaimTemplates"},
        "spec.template.spec": {
            *("automountServiceAccountToken", "enableServiceLinks", "terminationGracePeriodSeconds"),
            *("securityContext", "containers", "volumes"),
        },
    },
}
"""The members of each kind that the manifests may have: Kubernetes drops a misspelt one without a word."""
OF_A_CONTAINER = {
    *("name", "image", "ports", "resources", "readinessProbe", "livenessProbe", "securityContext", "volumeMounts"),
}


def test_no_member_of_a_manifest_is_misspelt(pod: Any) -> None:
    assert set(manifests()) == set(KNOWN)
    for kind, places in KNOWN.items():
        assert set(manifests()[kind]) == {"apiVersion", "kind", "metadata", "spec"}
        for place, members in places.items():
            found = manifests()[kind]
            for name in place.split("."):
                found = found[name]
            assert set(found) == members
    assert all(set(container) == OF_A_CONTAINER for container in pod["containers"])


def test_every_secret_of_the_settings_is_a_file_of_the_mounted_secret(pod: Any) -> None:
    settings = read_settings({}, {}, str(KUBERNETES / "settings.toml"))
    (container,) = pod["containers"]
    mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    (volume,) = [volume["name"] for volume in pod["volumes"] if "secret" in volume]
    references = [settings.registry_password, dict(settings.kafka)["sasl.password"]]
    assert {str(Path(one.removeprefix("file:")).parent) for one in references} == {mounts[volume]}
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    assert all(f"--from-file={Path(one).name}" in page for one in references)


@pytest.mark.rest
def test_kubectl_builds_the_manifests() -> None:
    kubectl = required_program("kubectl", "apt-get install -y kubernetes-client")
    done = subprocess.run([kubectl, "kustomize", str(KUBERNETES)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "image: registry.example.org/statestore:" in done.stdout
    (named,) = set(re.findall(r"name: (statestore-settings-\w+)", done.stdout))
    assert done.stdout.count(named) == 2
