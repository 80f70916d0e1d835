package main

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// procOf returns /proc with one process.
func procOf(command, status, mounts string) fstest.MapFS {
	return fstest.MapFS{
		"7/cgroup":       {Data: []byte("4:memory:/kubepods/besteffort/podabc/0123\n")},
		"7/cmdline":      {Data: []byte(command + "\x00--flag=1\x00")},
		"7/status":       {Data: []byte(status)},
		"7/mountinfo":    {Data: []byte(mounts)},
		"7/smaps_rollup": {Data: []byte("00400000-7fff [rollup]\nRss:      2000 kB\nPss:       1000 kB\n")},
		"uptime":         {Data: []byte("1.0 1.0\n")},
	}
}

const (
	confinedStatus = "Name:\tkarmada\nUid:\t65532\t65532\t65532\t65532\nCapEff:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n"
	readOnlyRoot   = "600 500 0:50 / / ro,relatime - overlay overlay rw,lowerdir=/l\n601 600 0:51 / /tmp rw - tmpfs tmpfs rw\n"
)

func TestProcessesOfContainers(t *testing.T) {
	confined := process{pod: "p", program: "etcd", user: nonroot, readOnly: true, filtered: true, confined: true, resident: 2000 << 10, proportional: 1000 << 10}
	tests := map[string]struct {
		proc fstest.MapFS
		pod  types.UID
		want []*process
	}{
		"the process of a container":                                   {procOf("/bin/etcd", confinedStatus, readOnlyRoot), "abc", []*process{&confined}},
		"a process of another Pod":                                     {procOf("/bin/etcd", confinedStatus, readOnlyRoot), "def", nil},
		"the process that holds the namespaces is none of a container": {procOf(pauseProgram, confinedStatus, readOnlyRoot), "abc", nil},
		"a process that is not confined": {
			procOf("etcd", "Uid:\t0\nCapEff:\t00000000a80425fb\nNoNewPrivs:\t0\nSeccomp:\t0\n", strings.ReplaceAll(readOnlyRoot, "/ ro", "/ rw")), "abc",
			[]*process{{pod: "p", program: "etcd", privileges: 0xa80425fb, resident: 2000 << 10, proportional: 1000 << 10}},
		},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			pods := []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: test.pod}}}
			got, err := readProcesses(test.proc, pods)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(process{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestProblemsOfProcesses(t *testing.T) {
	good := process{pod: "p", program: "karmada-webhook", user: nonroot, readOnly: true, filtered: true, confined: true}
	tests := map[string]struct {
		change func(*process)
		want   string
	}{
		"a confined process has none":       {func(*process) {}, ""},
		"root is one":                       {func(p *process) { p.user = 0 }, "karmada-webhook in Pod p runs as user 0, not as 65532"},
		"root is none for etcd":             {func(p *process) { p.user, p.program = 0, "etcd" }, ""},
		"a writable root is one":            {func(p *process) { p.readOnly = false }, "karmada-webhook in Pod p can write its root file system"},
		"a capability is one":               {func(p *process) { p.privileges = 1 }, "karmada-webhook in Pod p has capabilities 0x1"},
		"a missing filter is one":           {func(p *process) { p.filtered = false }, "karmada-webhook in Pod p has no seccomp filter"},
		"a way to gain privileges is one":   {func(p *process) { p.confined = false }, "karmada-webhook in Pod p can gain privileges"},
		"all problems of a process are one": {func(p *process) { p.readOnly, p.filtered = false, false }, "karmada-webhook in Pod p can write its root file system\nkarmada-webhook in Pod p has no seccomp filter"},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			p, got := good, ""
			test.change(&p)
			if err := p.problems(); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
