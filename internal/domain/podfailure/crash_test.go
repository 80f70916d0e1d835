package podfailure

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestLastCrash(t *testing.T) {
	terminated := func(exitCode int32, message string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode, Message: message}}
	}
	long := strings.Repeat("x", 4000)
	tests := map[string]struct {
		status corev1.ContainerStatus
		want   Crash
	}{
		"never ended":                  {},
		"ended without an error":       {status: corev1.ContainerStatus{State: terminated(0, "done")}},
		"the first crash":              {corev1.ContainerStatus{State: terminated(1, "a\nbad flag\n")}, Crash{"bad flag", 1, 1}},
		"a crash before the restart":   {corev1.ContainerStatus{RestartCount: 2, LastTerminationState: terminated(2, "bad flag")}, Crash{"bad flag", 2, 2}},
		"a crash after the last crash": {corev1.ContainerStatus{RestartCount: 2, State: terminated(1, "b"), LastTerminationState: terminated(1, "a")}, Crash{"b", 1, 3}},
		"a long line is whole":         {corev1.ContainerStatus{State: terminated(1, "a\n"+long)}, Crash{long, 1, 1}},
		"a usage after the error":      {corev1.ContainerStatus{State: terminated(2, "info\nerror verifying flags: --x\nusage:\n  --y  the y")}, Crash{"error verifying flags: --x", 2, 1}},
		"no log":                       {corev1.ContainerStatus{State: terminated(137, "")}, Crash{"", 137, 1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := LastCrash(&test.status)
			if diff := cmp.Diff(test.want, got); diff != "" || ok != (test.want != Crash{}) {
				t.Errorf("crash %v (-want +got):\n%s", ok, diff)
			}
		})
	}
}

func TestIsRepeated(t *testing.T) {
	tests := map[string]struct {
		earlier, now Crash
		want         bool
	}{
		"the same line":              {Crash{"unknown flag: --x", 1, 1}, Crash{"unknown flag: --x", 1, 2}, true},
		"the same line at two times": {Crash{"E1128 11:13:35.086757   29816 run.go:74] unknown flag", 1, 1}, Crash{"E1128 11:14:35.000001   31 run.go:74] unknown flag", 1, 3}, true},
		"the same crash":             {Crash{"unknown flag: --x", 1, 1}, Crash{"unknown flag: --x", 1, 1}, false},
		"another line":               {Crash{"unknown flag: --x", 1, 1}, Crash{"unknown flag: --y", 1, 2}, false},
		"no line":                    {Crash{"", 1, 1}, Crash{"", 1, 2}, false},
		"a server that starts":       {Crash{"dial tcp 10.0.0.1:443: connect: connection refused", 1, 1}, Crash{"dial tcp 10.0.0.1:443: connect: connection refused", 1, 2}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.now.IsRepeated(test.earlier); got != test.want {
				t.Errorf("repeated: %v", got)
			}
		})
	}
}
