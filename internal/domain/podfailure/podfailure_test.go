package podfailure

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

func parsePods(t testing.TB, texts ...string) []corev1.Pod {
	t.Helper()
	var list []corev1.Pod
	for _, text := range texts {
		var pod corev1.Pod
		if err := yaml.UnmarshalStrict([]byte(text), &pod); err != nil {
			t.Fatal(err)
		}
		list = append(list, pod)
	}
	return list
}

const (
	unschedulable = `{status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: no node has room}]}}`
	pulling       = `{spec: {containers: [{name: app, image: "nginx:nope"}]}, status: {phase: Pending, containerStatuses: [{name: app, state: {waiting: {reason: ErrImagePull, message: a}}}]}}`
	backingOff    = `{spec: {containers: [{name: app, image: "nginx:nope"}]}, status: {phase: Pending, containerStatuses: [{name: app, state: {waiting: {reason: ImagePullBackOff, message: b}}}]}}`
	creating      = `{status: {phase: Pending, containerStatuses: [{name: app, state: {waiting: {reason: ContainerCreating}}}]}}`
	running       = `{status: {phase: Running, containerStatuses: [{name: app, ready: true, state: {running: {}}}]}}`
)

func TestMostCommon(t *testing.T) {
	image := Failure{ImagePullBackOff, "container app cannot get image nginx:nope"}
	tests := map[string]struct {
		pods []string
		want Failure
	}{
		"no Pods":                                     {},
		"Pods that run":                               {[]string{running, running}, Failure{}},
		"Pods that are being created":                 {[]string{creating}, Failure{}},
		"no node has room":                            {[]string{running, unschedulable}, Failure{"Unschedulable", "no node has room"}},
		"a missing image":                             {[]string{pulling}, image},
		"a missing image between two attempts":        {[]string{backingOff}, image},
		"the most frequent failure":                   {[]string{unschedulable, pulling, backingOff}, image},
		"equally frequent failures: the first reason": {[]string{unschedulable, pulling}, image},
		"a crashing container": {
			[]string{`{status: {phase: Running, containerStatuses: [{name: app, lastState: {terminated: {exitCode: 3, reason: Error}},
				state: {waiting: {reason: CrashLoopBackOff, message: back-off 40s}}}]}}`},
			Failure{"CrashLoopBackOff", "container app does not stay up: Error, exit code 3"}},
		"a crashing container that says why": {
			[]string{`{status: {phase: Running, containerStatuses: [{name: app, lastState: {terminated: {exitCode: 1, reason: Error, message: "starting\nerror: no such flag\n"}},
				state: {waiting: {reason: CrashLoopBackOff, message: back-off 40s}}}]}}`},
			Failure{"CrashLoopBackOff", "container app does not stay up: Error, exit code 1: error: no such flag"}},
		"an init container with an invalid configuration": {
			[]string{`{status: {phase: Pending, initContainerStatuses: [{name: first, state: {waiting: {reason: CreateContainerConfigError, message: configmap "c" not found}}}]}}`},
			Failure{"CreateContainerConfigError", `container first: configmap "c" not found`}},
		"a terminating Pod": {[]string{strings.Replace(unschedulable, "{status", `{metadata: {deletionTimestamp: "2030-01-01T00:00:00Z"}, status`, 1)}, Failure{}},
		"a long message":    {[]string{strings.Replace(unschedulable, "no node has room", strings.Repeat("x", 500), 1)}, Failure{"Unschedulable", strings.Repeat("x", 253) + "..."}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := MostCommon(parsePods(t, tc.pods...))
			if ok != (tc.want != Failure{}) {
				t.Errorf("ok = %v", ok)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("failure (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOrderOfPodsDoesNotMatter(t *testing.T) {
	all := parsePods(t, unschedulable, pulling, backingOff, creating, running)
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.SampledFrom(all), 0, 8).Draw(t, "pods")
		want, _ := MostCommon(list)
		got, _ := MostCommon(rapid.Permutation(list).Draw(t, "order"))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("failure (-want +got):\n%s", diff)
		}
	})
}

func TestFailureIsAddedToStatus(t *testing.T) {
	failure := Failure{"Unschedulable", "no node has room"}
	const condition = `{"message":"no node has room","reason":"Unschedulable","status":"True","type":"PodFailure"}`
	tests := map[string]struct{ status, want string }{
		"beside others":   {`{"replicas":1,"conditions":[{"type":"Available"}]}`, `{"conditions":[{"type":"Available"},` + condition + `],"replicas":1}`},
		"the first":       {`{"replicas":9007199254740993}`, `{"conditions":[` + condition + `],"replicas":9007199254740993}`},
		"to null":         {`null`, `null`},
		"to invalid JSON": {`{`, ``},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := failure.AddTo(&runtime.RawExtension{Raw: []byte(tc.status)})
			if tc.want == "" {
				if err == nil {
					t.Errorf("invalid JSON became %s", got.Raw)
				}
				return
			}
			if err != nil || string(got.Raw) != tc.want {
				t.Errorf("status = %s (error %v), want %s", got.Raw, err, tc.want)
			}
			if found, ok := FromStatus(got); ok != (tc.want != "null") || ok && found != failure {
				t.Errorf("In = %v, %v", found, ok)
			}
		})
	}
	if got, err := failure.AddTo(nil); got != nil || err != nil {
		t.Errorf("no status became %v (error %v)", got, err)
	}
	if _, ok := FromStatus(nil); ok {
		t.Error("a missing status has a failure")
	}
}
