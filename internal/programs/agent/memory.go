package agent

import (
	"context"
	"runtime/debug"
	"time"

	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/programs/command"
)

const (
	// gcPercent is the default of GOGC for agents. An installation with 1000 clusters has 1000
	// agents that mostly wait. So a few MiB less memory in each agent are more important than the
	// time for garbage collection of such a small heap.
	gcPercent = 40
	// startupPeriod is the assumed duration of an agent's start. The start needs more memory than later
	// operation, because the agent discovers all APIs, registers, and lists all objects.
	startupPeriod = 30 * time.Second
)

// reduceMemory lowers the GC target, unless GOGC is set, and releases unused memory once after
// startupPeriod. stop ends the wait, and returns when no release is in progress.
func reduceMemory(ctx context.Context) (stop func()) {
	command.LowerGCTarget(gcPercent)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-ctx.Done():
		case <-time.After(startupPeriod):
			releaseMemory(ctx)
		}
	}()
	return func() { cancel(); <-ended }
}

// releaseMemory returns memory to the operating system: the free heap, and pages of the
// executable. When such a page is needed, the kernel loads it again.
func releaseMemory(ctx context.Context) {
	debug.FreeOSMemory()
	if err := releaseProgramPages(); err != nil {
		klog.FromContext(ctx).V(2).Info("Cannot release the pages of the executable", "reason", err.Error())
	}
}
