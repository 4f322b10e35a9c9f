"""The bill of materials: each package of the archives and each jar of the lists, as CycloneDX 1.6."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import Distribution, distributions
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.factory.license import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from infra.package.jar_list import Jar

OWN = "statestore"


def write_sbom(
    file: Path, version: str, environments: Mapping[str, Path], jars: Mapping[str, Iterable[Jar]], epoch: int
) -> None:
    """Writes the bill of materials. `environments`: the packages of each archive; `jars`: those of each list."""
    purl = _purl("pypi", OWN, version)
    job = Component(name=OWN, version=version, type=ComponentType.APPLICATION, bom_ref=str(purl), purl=purl)
    components: dict[PackageURL, Component] = {}
    for archive, packages in sorted(environments.items()):
        for package in distributions(path=[str(packages)]):
            if package.name != OWN:
                _add(components, _python_package(package), archive)
    for list_, of_list in sorted(jars.items()):
        for jar in of_list:
            _add(components, _java_package(jar), list_)
    made = BomMetaData(component=job, timestamp=datetime.fromtimestamp(epoch, UTC))
    serial = uuid5(NAMESPACE_URL, " ".join(sorted(map(str, (purl, *components)))))
    bom = Bom(components=components.values(), metadata=made, serial_number=serial)
    bom.register_dependency(job, components.values())
    file.write_text(JsonV1Dot6(bom).output_as_string(indent=2) + "\n", encoding="utf-8")


def _add(components: dict[PackageURL, Component], component: Component, where: str) -> None:
    """Adds a component, or another file that has it."""
    assert component.purl is not None
    known = components.setdefault(component.purl, component)
    known.properties.add(Property(name="statestore:file", value=where))


def _python_package(package: Distribution) -> Component:
    data, name = package.metadata, package.name
    texts = data.get_all("License-Expression") or data.get_all("License") or []
    licences = [LicenseFactory().make_from_string(text.splitlines()[0]) for text in texts]
    purl = _purl("pypi", name.lower().replace("_", "-"), package.version)
    return Component(name=name, version=package.version, bom_ref=str(purl), purl=purl, licenses=licences)


def _java_package(jar: Jar) -> Component:
    module = jar.module
    purl = _purl("maven", module.name, module.version, module.organisation)
    sha256 = HashType(alg=HashAlgorithm.SHA_256, content=jar.sha256)
    return Component(
        group=module.organisation,
        name=module.name,
        version=module.version,
        bom_ref=str(purl),
        purl=purl,
        hashes=[sha256],
    )


def _purl(kind: str, name: str, version: str, group: str | None = None) -> PackageURL:
    return PackageURL(type=kind, namespace=group, name=name, version=version)
