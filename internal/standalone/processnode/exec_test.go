package processnode

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
)

// followLog reads the log of a Pod in the same way as `kubectl logs -f`.
func followLog(t *testing.T, n *testNode, name string) *logFollower {
	t.Helper()
	server := httptest.NewServer(n.Handler())
	t.Cleanup(server.Close)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/containerLogs/"+namespace+"/"+name+"/main?follow=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	f := newLogFollower()
	go func() {
		defer f.End()
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return
		}
		defer func() { _ = response.Body.Close() }()
		_, _ = io.Copy(f, response.Body)
	}()
	return f
}

func getPath(t *testing.T, n *testNode, path string) (code int, text string) {
	t.Helper()
	recorder := httptest.NewRecorder()
	n.Handler().ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return recorder.Code, recorder.Body.String()
}

func TestSimulatedPodsAreReported(t *testing.T) {
	n := startNode(t, t.TempDir())
	for _, path := range []string{"/containerLogs/default/web/nginx", "/exec/default/web/nginx?command=ls", "/portForward/default/web"} {
		code, text := getPath(t, n, path)
		if code != http.StatusBadRequest || !strings.Contains(text, "default/web is simulated") {
			t.Errorf("%s: %d %q", path, code, text)
		}
	}
}

func TestLogsOfEachRunAreAvailable(t *testing.T) {
	n := startNode(t, t.TempDir())
	n.backoff = restartBackoff{initial: time.Hour, max: time.Hour, resetAfter: time.Hour}
	n.create(t, testPod("exit", "exit", "3"))
	n.await(t, "exit", "back-off", isWaitingFor(reasonCrashLoop, "back-off 1h0m0s"))
	for _, query := range []string{"", "?previous=true"} {
		code, text := getPath(t, n, "/containerLogs/"+namespace+"/exit/main"+query)
		if code != http.StatusOK || !strings.Contains(text, "arguments: [3]") {
			t.Errorf("logs%s: %d %q", query, code, text)
		}
	}
	code, text := getPath(t, n, "/containerLogs/"+namespace+"/exit/other")
	if code != http.StatusNotFound || !strings.Contains(text, `no container "other"`) {
		t.Errorf("an unknown container: %d %q", code, text)
	}
}

func TestContainerWithoutRunHasNoLog(t *testing.T) {
	n := startNode(t, t.TempDir())
	pod := testPod("p", "wait")
	pod.Spec.Containers[0].Image = "karmada-absent"
	n.create(t, pod)
	n.await(t, "p", "reason", isWaitingFor(reasonPullBackOff, ""))
	code, text := getPath(t, n, "/containerLogs/"+namespace+"/p/main")
	if code != http.StatusBadRequest || !strings.Contains(text, reasonPullBackOff) {
		t.Errorf("%d %q", code, text)
	}
}

func TestExecRunsOnlyProgramOfPod(t *testing.T) {
	dir := t.TempDir()
	n := startNode(t, dir, &corev1.Secret{ObjectMeta: objectMeta("settings"), Data: map[string][]byte{"a": []byte("content")}})
	pod := testPod("wait", "wait")
	pod.Spec.Volumes = []corev1.Volume{secretVolume("settings")}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/etc/settings"}}
	n.create(t, pod)
	n.await(t, "wait", "running", isRunning)
	server := httptest.NewServer(n.Handler())
	defer server.Close()

	const program = "karmada-test"
	tests := map[string]struct {
		command        []string
		stdin          string
		stdout, stderr string
		code           int
		rejected       bool
	}{
		"output is returned":                           {command: []string{program, "act:print", "/etc/settings/a"}, stdout: "arguments: [" + dir + "/pods/wait-uid/volumes/v/a]\ncontent at "},
		"input is read":                                {command: []string{program, "act:copy"}, stdin: "typed", stdout: "arguments: []\ntyped"},
		"unread input does not block":                  {command: []string{program, "act:exit", "0"}, stdin: "not read", stdout: "arguments: [0]\n"},
		"the exit code is returned":                    {command: []string{program, "act:fail"}, stdout: "arguments: []\n", stderr: "wrong\n", code: 7},
		"a shell is rejected":                          {command: []string{"sh", "-c", "echo $HOSTNAME"}, rejected: true},
		"a shell with a path is rejected":              {command: []string{"/bin/sh"}, rejected: true},
		"another name of the same file is rejected":    {command: []string{filepath.Base(os.Args[0])}, rejected: true},
		"an address of the machine is rejected":        {command: []string{program, "--bind-address=192.0.2.7"}, rejected: true},
		"a path that contains the program is rejected": {command: []string{program + "/../sh"}, rejected: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			query := url.Values{"command": test.command, "output": {"1"}, "error": {"1"}}
			var stdout, stderr bytes.Buffer
			options := remotecommand.StreamOptions{Stdout: &stdout, Stderr: &stderr}
			if test.stdin != "" {
				query.Set("input", "1")
				options.Stdin = strings.NewReader(test.stdin)
			}
			target, err := url.Parse(server.URL + "/exec/" + namespace + "/wait/main?" + query.Encode())
			if err != nil {
				t.Fatal(err)
			}
			executor, err := remotecommand.NewSPDYExecutor(&rest.Config{Host: server.URL}, http.MethodPost, target)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			err = executor.StreamWithContext(ctx, options)
			var exit utilexec.CodeExitError
			if test.rejected {
				if err == nil || !strings.Contains(err.Error(), "no other command runs") && !strings.Contains(err.Error(), "not an address of the Pod") || stdout.Len() > 0 {
					t.Errorf("the command ran and wrote %q: %v", stdout.String(), err)
				}
				return
			}
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if exit.Code != test.code {
				t.Errorf("exit code %d, want %d", exit.Code, test.code)
			}
			if !strings.HasPrefix(stdout.String(), test.stdout) || stderr.String() != test.stderr {
				t.Errorf("the command wrote %q and %q, want %q and %q", stdout.String(), stderr.String(), test.stdout, test.stderr)
			}
		})
	}
}

func TestAttachShowsOutputUntilEnd(t *testing.T) {
	n := startNode(t, t.TempDir())
	pod := testPod("tick", "tick")
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	n.create(t, pod)
	pid := processID(t, n.await(t, "tick", "running", isRunning))
	server := httptest.NewServer(n.Handler())
	defer server.Close()
	target, err := url.Parse(server.URL + "/attach/" + namespace + "/tick/main?input=1&output=1&error=1")
	if err != nil {
		t.Fatal(err)
	}
	executor, err := remotecommand.NewSPDYExecutor(&rest.Config{Host: server.URL}, http.MethodPost, target)
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr, ended := newLogFollower(), newLogFollower(), make(chan error, 1)
	go func() {
		ended <- executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader("typed"), Stdout: stdout, Stderr: stderr})
	}()
	if !stdout.WaitFor("tick") || !stderr.WaitFor("tock") {
		t.Fatalf("the program wrote %q and %q", stdout.Text(), stderr.Text())
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the end of the program is reported as %v", err)
	}
	if text := stdout.Text(); !strings.HasSuffix(text, "the end\n") || strings.Contains(text, "tock") {
		t.Errorf("the last output is %.40q", text[max(0, len(text)-40):])
	}
	n.await(t, "tick", "end", func(pod *corev1.Pod) error {
		if pod.Status.Phase != corev1.PodSucceeded {
			return errors.New("the phase is " + string(pod.Status.Phase))
		}
		return nil
	})
	executor, err = remotecommand.NewSPDYExecutor(&rest.Config{Host: server.URL}, http.MethodPost, target)
	if err != nil {
		t.Fatal(err)
	}
	err = executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader(""), Stdout: newLogFollower(), Stderr: newLogFollower()})
	if err == nil || !strings.Contains(err.Error(), errNotRunning.Error()) {
		t.Errorf("attaching after the end: %v", err)
	}
}
