package testenv

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"k8s.io/klog/v2"
)

// LogTo appends the logs of all servers and components of this process to a file. If the file name
// is empty, it drops the logs. stop writes the buffered logs.
func LogTo(name string) (stop func(), err error) {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	// Write each line only once, regardless of its severity.
	if err := errors.Join(flags.Set("logtostderr", "false"), flags.Set("stderrthreshold", "FATAL"),
		flags.Set("one_output", "true")); err != nil {
		return nil, fmt.Errorf("configuring the logs: %w", err)
	}
	if name == "" {
		klog.SetOutput(io.Discard)
		return func() {}, nil
	}
	// Open the file for appending, because several processes write to it.
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
