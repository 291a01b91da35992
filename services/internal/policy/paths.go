package policy

import (
	"path"
	"strings"
)

// SystemFolders lists the folders in which an allow rule by bare name accepts an
// argv[0] with slashes. Only the administrator of a machine writes there.
func SystemFolders() []string {
	return []string{
		"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/usr/local/go/bin",
		"/opt/homebrew/bin", "/opt/homebrew/sbin", "/snap/bin", "/run/current-system/sw/bin",
	}
}

// SystemTrees lists the folders below which the real path of a program has to lie
// for an allow rule by bare name.
func SystemTrees() []string {
	return []string{"/bin", "/sbin", "/lib", "/lib64", "/usr", "/opt", "/snap", "/nix/store", "/gnu/store", "/System", "/Library"}
}

// within reports whether the clean path p is dir or lies below it, component by
// component: /srv/ab is not within /srv/a. An empty path is within nothing.
func within(p, dir string) bool {
	if p == "" || dir == "" {
		return false
	}
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

// withinFold is within for rules that deny: it ignores letter case, as some file
// systems do.
func withinFold(p, dir string) bool { return within(strings.ToLower(p), strings.ToLower(dir)) }

func withinAny(p string, dirs []string) bool {
	for _, dir := range dirs {
		if within(p, dir) {
			return true
		}
	}
	return false
}

// ownedByJob reports whether the program at real path p lies in the working folder,
// where whoever proposes may have put it. A working folder that is above a whole
// system tree says nothing about who writes there.
func ownedByJob(p, cwd string) bool {
	if cwd == "" || cwd == "/" || !within(p, cwd) {
		return false
	}
	for _, tree := range SystemTrees() {
		if within(p, tree) && within(tree, cwd) {
			return false
		}
	}
	return true
}

// clean returns p cleaned, "" when it is empty.
func clean(p string) string {
	if p == "" {
		return ""
	}
	return path.Clean(p)
}
