# shellcheck shell=bash
# Set-up shared by the scripts of this folder: the root of the clone, a new enough cargo, a C compiler.
#
# Owns: the checks, and the installation of the few Debian packages that are needed (a C compiler for the bundled SQLite;
# what librdkafka is built with, for those who ask), when root; the cargo features that tests are built with.
# Does not own: the installation of Rust: it says how.
# Sourced by: scripts/orders, scripts/test, .ci/run.

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root" || exit

# One target folder and the dev profile for everything that is tested or tried out.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}"

# Everything that needs a real server is a cargo feature: a newcomer's first build does without, tests have all of it.
features=mysql,rdkafka

fail() {
    printf 'error: %s\n' "$1" >&2
    shift
    if (($# > 0)); then printf '  help: %s\n' "$@" >&2; fi
    exit 1
}

# True when version $1 is at least version $2; both are numbers with dots.
at_least() {
    [[ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" == "$2" ]]
}

require_cargo() {
    local wanted found
    wanted="$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)"
    # rustup installs here; a shell opened before it did does not know the folder yet.
    if ! command -v cargo >/dev/null && [[ -x "$HOME/.cargo/bin/cargo" ]]; then
        PATH="$HOME/.cargo/bin:$PATH"
    fi
    if ! command -v cargo >/dev/null || ! command -v rustc >/dev/null; then
        fail "cargo is not installed" \
            "Rust $wanted or newer comes with rustup (https://rustup.rs):" \
            "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"
    fi
    found="$(rustc --version | cut -d ' ' -f 2 | cut -d - -f 1)"
    if ! at_least "$found" "$wanted"; then
        fail "Rust $found is too old: $wanted or newer is needed" \
            "rustup update stable" \
            "or, without rustup: curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"
    fi
}

# SQLite is compiled from its bundled source, and every Rust program needs a linker.
require_c_compiler() {
    if command -v cc >/dev/null && printf '#include <stdio.h>\nint main(void) { return 0; }\n' |
        cc -x c -o /dev/null - 2>/dev/null; then
        return
    fi
    install_packages "there is no working C compiler" gcc libc6-dev
}

# librdkafka is built by its own configure script and make.
require_librdkafka_tools() {
    if command -v g++ >/dev/null && command -v make >/dev/null && command -v python3 >/dev/null; then return; fi
    install_packages "librdkafka cannot be built: g++, make or python3 is missing" g++ make python3-minimal
}

# install_packages REASON PACKAGE...: as root on a Debian-like machine; elsewhere says what to do.
install_packages() {
    local reason="$1"
    shift
    if ((EUID == 0)) && command -v apt-get >/dev/null; then
        printf 'installing %s\n' "$*"
        if ! { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$@"; }; then
            fail "apt-get could not install $*" "install them by hand, then start this again"
        fi
        return
    fi
    fail "$reason" "on Debian and Ubuntu: sudo apt-get install $*" "elsewhere: install the same under its name there"
}

require_cargo
require_c_compiler
