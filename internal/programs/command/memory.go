package command

import (
	"os"
	"runtime/debug"
)

// LowerGCTarget sets the GC target, in percent of the live heap, unless the user set GOGC. A program
// with a large and stable heap needs less memory with it, and more time for garbage collection.
func LowerGCTarget(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}
