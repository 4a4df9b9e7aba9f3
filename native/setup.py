"""Builds the operator ahead of time: the sources, flags and import name of the just-in-time build.

    pip install --no-build-isolation ./native

Without --no-build-isolation pip builds in an environment of its own, against the torch that it resolves
there; a library is only ever loaded by the torch it was built for.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import torch  # noqa: E402
from self_attention_ext import _flags, _sources, _torch_facts  # noqa: E402
from setuptools import Extension, setup  # noqa: E402
from setuptools.command.build_py import build_py  # noqa: E402
from torch.utils.cpp_extension import BuildExtension  # noqa: E402

FACTS = _torch_facts.facts()
NAME = "self_attention_ext"


class BuildOperator(BuildExtension):  # type: ignore[misc, valid-type]
    """Compiles the library, and writes beside it which torch it was built for."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        # Whatever `ninja` comes first on PATH may be another environment's; setuptools compiles well
        # without it.
        super().__init__(*args, **{**kwargs, "use_ninja": False})

    def run(self) -> None:
        super().run()
        record = {"torch_version": FACTS["torch_version"], "cuda": FACTS["cuda"]}
        built = Path(self.get_ext_fullpath(f"{NAME}._C"))
        (built.parent / "_C.json").write_text(json.dumps(record), encoding="utf-8")

    def get_export_symbols(self, ext: Extension) -> list[str]:
        return []  # it registers operators and is no Python module: there is no PyInit to export


class BuildPackage(build_py):
    """Ships the sources inside the package, so that the just-in-time build finds them there too."""

    def run(self) -> None:
        super().run()
        target = Path(self.build_lib) / NAME / "csrc"
        target.mkdir(parents=True, exist_ok=True)
        folder = _sources.source_folder()
        for path in (*_sources.sources(folder), *_sources.headers(folder)):
            shutil.copyfile(path, target / path.name)


def extension() -> Extension:
    """The operator as setuptools builds it. BuildExtension adds torch's language standard."""
    folder = Path(os.path.relpath(_sources.source_folder(), HERE))
    include = "/external:I" if sys.platform == "win32" else "-isystem"
    includes = [word for path in FACTS["include_dirs"] for word in (include, path)]
    rpath = [] if sys.platform == "win32" else [f"-Wl,-rpath,{FACTS['library_dir']}"]
    return Extension(
        f"{NAME}._C",
        sources=[(folder / path.name).as_posix() for path in _sources.sources(HERE / folder)],
        depends=[(folder / path.name).as_posix() for path in _sources.headers(HERE / folder)],
        extra_compile_args=[*_flags.compile_flags(cxx11_abi=FACTS["cxx11_abi"]), *includes],
        library_dirs=[FACTS["library_dir"]],
        libraries=list(_flags.LIBRARIES),
        extra_link_args=rpath,
        language="c++",
    )


if __name__ == "__main__":
    setup(
        packages=[NAME],
        package_data={NAME: ["py.typed"]},
        ext_modules=[extension()],
        cmdclass={"build_ext": BuildOperator, "build_py": BuildPackage},
        install_requires=[f"torch=={torch.__version__.partition('+')[0]}"],
    )
