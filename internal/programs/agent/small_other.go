//go:build !linux

package agent

// releaseProgram does nothing: other systems do not tell which pages they hold.
func releaseProgram() error { return nil }
