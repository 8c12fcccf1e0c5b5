"""Build the library: ``python -m native`` in the source tree for this machine, if it is not current."""

from native.build import FOLDER, build_all, is_current, target_of

if __name__ == "__main__":
    target = target_of(None)
    if not is_current(target):
        print(f"Building the machine code for {target.name}", flush=True)
        build_all({target: FOLDER})
