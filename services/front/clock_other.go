//go:build !linux

package front

import "errors"

// clockState cannot tell on this platform.
func clockState() (kept bool, err error) { return false, errors.ErrUnsupported }
