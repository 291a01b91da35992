package host

import "runtime/debug"

// release is the version that the next tag will carry.
const release = "0.1.0"

// Version is the release, with the revision where the build recorded one
// (Semantic Versioning 2.0.0).
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return release
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && s.Value != "" {
			return release + "+" + s.Value[:min(len(s.Value), 12)]
		}
	}
	return release
}
