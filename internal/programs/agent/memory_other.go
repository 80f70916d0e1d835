//go:build !linux

package agent

// releaseProgramPages does nothing, because other systems do not expose the pages of a process.
func releaseProgramPages() error { return nil }
