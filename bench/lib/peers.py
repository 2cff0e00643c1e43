"""Programs of others that Ferry is measured beside."""
import pathlib
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent


def build_kubevirt_proxy(build):
    """KubeVirt's own migration proxy, built by Go into BUILD/bench; raises RuntimeError with the reason when it cannot be."""
    if not shutil.which("go"):
        raise RuntimeError("KubeVirt's proxy cannot be built: there is no Go toolchain")
    built = subprocess.run(["go", "build", "-mod=mod", "-o", build / "bench" / "kubevirt-proxy", "."],
                           cwd=HERE.parent / "peers" / "kubevirt-proxy", capture_output=True, text=True)
    if built.returncode != 0:
        raise RuntimeError(f"KubeVirt's proxy cannot be built: {built.stderr.strip().splitlines()[-1:]}")
