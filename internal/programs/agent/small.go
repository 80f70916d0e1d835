package agent

import (
	"context"
	"os"
	"runtime/debug"
	"time"

	"k8s.io/klog/v2"
)

const (
	// gcPercent is how much an agent lets its heap grow between two collections. A
	// thousand clusters have a thousand agents that mostly wait: a few megabytes in each
	// of them count more than the time of a collection of a heap as small as this.
	gcPercent = 40
	// settled is when an agent is past its start, which needs more than what follows: it
	// learns all types of the API, registers, and reads what there is for the first time.
	settled = 30 * time.Second
)

// preferSmall makes the process small, unless the operator has said how large it may
// be, and gives back what only its start needs when that is over. Whoever ends the
// agent before calls stop, which waits until nothing is under way.
func preferSmall(ctx context.Context) (stop func()) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-ctx.Done():
		case <-time.After(settled):
			shrink(ctx)
		}
	}()
	return func() { cancel(); <-ended }
}

// shrink gives memory back to the system: the heap that is free, and the pages of the
// program that were needed once. The system reads those that are needed again.
func shrink(ctx context.Context) {
	debug.FreeOSMemory()
	if err := releaseProgram(); err != nil {
		klog.FromContext(ctx).V(2).Info("Keeping the pages of the program in memory", "reason", err.Error())
	}
}
