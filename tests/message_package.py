"""Build a message package by ROS's generators, with what rclpy reads of it: `python -m tests.message_package`.

The arguments are its name, the prefix and a folder for code; the standard input has the definitions as JSON. It takes a
third of the time of CMake, which runs ten generators in a process each, of which rclpy needs six.
"""

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import numpy as np
from ament_index_python.packages import get_package_prefix, get_package_share_directory

from tests.foreign_interfaces import site_packages

USED = ("std_msgs", "geometry_msgs", "sensor_msgs", "builtin_interfaces")  # by the definitions
SUPPORTS = ["rosidl_typesupport_fastrtps_c", "rosidl_typesupport_introspection_c"]  # that rmw_fastrtps_cpp reads
KINDS = ("generator_c", "generator_py", "typesupport_c", "typesupport_fastrtps_c", "typesupport_introspection_c")
RUNTIME = ("rosidl_runtime_c", "rcutils", "rmw", "rosidl_typesupport_c", "rosidl_typesupport_fastrtps_cpp", *SUPPORTS)


def build(package: str, messages: Mapping[str, str], prefix: Path, code: Path) -> None:
    """Generate a package, and compile it into one extension module."""
    share, modules = prefix / "share" / package, site_packages(prefix) / package
    index = prefix / "share/ament_index/resource_index/packages"
    for folder in (index, share / "msg", modules, code):
        folder.mkdir(parents=True)
    (index / package).touch()
    (modules / "__init__.py").touch()
    convert_msg_to_idl = import_module("rosidl_adapter.msg").convert_msg_to_idl
    for name, text in messages.items():
        (share / f"msg/{name}.msg").write_text(text + "\n", encoding="utf-8")
        convert_msg_to_idl(share, package, Path(f"msg/{name}.msg"), share / "msg")
    arguments = {
        "package_name": package,
        "idl_tuples": [f"{share}:msg/{name}.idl" for name in messages],
        "ros_interface_files": [f"{share}/msg/{name}.msg" for name in messages],
        "type_description_tuples": [f"msg/{name}.idl:{share}/msg/{name}.json" for name in messages],
        "include_paths": [f"{used}:{get_package_share_directory(used)}" for used in USED],
        "ros_interface_dependencies": [],
        "target_dependencies": [],
    }

    def generate(generator: str, output: Path, step: str, *more: list[str]) -> list[str]:
        """Run a step of a generator; return the sources in C."""
        resources = Path(get_package_share_directory(generator), "resource")
        file = code / "arguments.json"
        places = {"output_dir": str(output), "template_dir": str(resources)}
        file.write_text(json.dumps(arguments | places), encoding="utf-8")
        getattr(import_module(generator), step)(str(file), *more)
        for header in resources.glob("*__visibility_control.h.in"):
            text = header.read_text(encoding="utf-8")
            text = text.replace("@PROJECT_NAME@", package).replace("@PROJECT_NAME_UPPER@", package.upper())
            (output / "msg" / header.stem).write_text(text, encoding="utf-8")
        return [str(path) for path in output.rglob("*.c")]

    common, inside = code / "common" / package, code / "introspection" / package
    generate("rosidl_generator_type_description", share, "generate_type_hash")
    generate("rosidl_typesupport_c", common, "generate_c", SUPPORTS)
    generate("rosidl_typesupport_fastrtps_c", common, "generate_typesupport_fastrtps_c")
    sources = {
        "common": generate("rosidl_generator_c", common, "generate_c"),
        "introspection": generate("rosidl_typesupport_introspection_c", inside, "generate_c"),
        "python": generate("rosidl_generator_py", modules, "generate_py", ["rosidl_typesupport_c"]),
    }
    module = modules / f"{package}_s__rosidl_typesupport_c{sysconfig.get_config_var('EXT_SUFFIX')}"
    compile_module(package, code, sources, module)
    for support in SUPPORTS:  # rclpy looks for them as libraries
        library = prefix / f"lib/lib{package}__{support}.so"
        library.symlink_to(os.path.relpath(module, library.parent))


def compile_module(package: str, code: Path, sources: Mapping[str, list[str]], module: Path) -> None:
    """Compile the C sources, which have equal names in different parts, and all C++ sources as one."""
    root = Path(get_package_prefix("rclpy"))
    headers = [*(root / "include").iterdir(), root / "include", code / "common", code / "introspection"]
    headers += [Path(sysconfig.get_path("include")), Path(np.get_include())]
    options = ["-O0", "-w", "-fPIC", f'-DROS_PACKAGE_NAME="{package}"', *(f"-I{folder}" for folder in headers)]
    for part, files in sources.items():
        (code / "objects" / part).mkdir(parents=True)
        subprocess.run(["cc", "-c", *options, *files], cwd=code / "objects" / part, check=True)
    united = code / "all.cpp"
    united.write_text("".join(f'#include "{path}"\n' for path in (code / "common").rglob("*.cpp")), encoding="utf-8")
    names = [*(f"{used}__rosidl_{kind}" for used in USED for kind in KINDS), *RUNTIME]
    libraries = [str(root / f"lib/lib{name}.so") for name in names]
    libraries += map(str, (root / "lib").glob("libfastcdr.so*"))
    objects = map(str, (code / "objects").rglob("*.o"))
    command = ["c++", "-shared", "-std=c++17", *options, str(united), *objects, *libraries, "-o", str(module)]
    subprocess.run(command, check=True)


if __name__ == "__main__":
    build(sys.argv[1], json.load(sys.stdin), Path(sys.argv[2]), Path(sys.argv[3]))
