# Sourced by tests/run and deploy/quickstart: installs the Debian packages of a list that are missing.
# install_packages FILE; as root, or by sudo where that exists.
install_packages() {
	local missing=() name
	while read -r name; do
		dpkg-query -W -f='${Status}' "$name" 2>/dev/null | grep -q 'ok installed' || missing+=("$name")
	done < <(grep -v '^#' "$1")
	[ ${#missing[@]} -eq 0 ] && return 0
	echo "installing ${missing[*]}"
	local run=()
	if [ "$(id -u)" != 0 ]; then
		command -v sudo >/dev/null || {
			echo "these Debian packages are missing and only root can install them: ${missing[*]}" >&2
			return 1
		}
		run=(sudo)
	fi
	"${run[@]}" apt-get update -qq
	DEBIAN_FRONTEND=noninteractive "${run[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}
