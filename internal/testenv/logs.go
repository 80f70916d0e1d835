package testenv

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"k8s.io/klog/v2"
)

// LogTo appends the logs of all servers and components of this process to a file, or
// drops them if the name of the file is empty. stop writes what is buffered.
func LogTo(name string) (stop func(), err error) {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	// Each line is written once, whatever its severity.
	if err := errors.Join(flags.Set("logtostderr", "false"), flags.Set("stderrthreshold", "FATAL"), flags.Set("one_output", "true")); err != nil {
		return nil, fmt.Errorf("configuring the logs: %w", err)
	}
	if name == "" {
		klog.SetOutput(io.Discard)
		return func() {}, nil
	}
	// Several processes append to the file.
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log file: %w", err)
	}
	klog.SetOutput(file)
	return func() {
		klog.Flush()
		_ = file.Close()
	}, nil
}
