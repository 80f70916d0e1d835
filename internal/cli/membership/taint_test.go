package membership

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karmada.io/karmada/internal/cli/command"
)

func TestParseTaintArguments(t *testing.T) {
	tests := map[string]struct {
		args  string
		names []string
		want  taintChanges
		wrong string
	}{
		"names, then taints to set and to remove": {
			args: "clusters east west a=b:NoSchedule c:NoExecute d:NoSchedule- e-", names: []string{"east", "west"},
			want: taintChanges{
				set:    []corev1.Taint{{Key: "a", Value: "b", Effect: "NoSchedule"}, {Key: "c", Effect: "NoExecute"}},
				remove: []corev1.Taint{{Key: "d", Effect: "NoSchedule"}, {Key: "e"}},
			},
		},
		"a key with a prefix": {
			args: "cluster east x.io/a=:NoSchedule", names: []string{"east"},
			want: taintChanges{set: []corev1.Taint{{Key: "x.io/a", Effect: "NoSchedule"}}},
		},
		"the same key with another effect can be removed": {
			args: "cluster east a:NoSchedule a:NoExecute-", names: []string{"east"},
			want: taintChanges{set: []corev1.Taint{{Key: "a", Effect: "NoSchedule"}}, remove: []corev1.Taint{{Key: "a", Effect: "NoExecute"}}},
		},
		"a name given twice": {
			args: "clusters east west east a-", names: []string{"east", "west"}, want: taintChanges{remove: []corev1.Taint{{Key: "a"}}},
		},
		"another type":              {args: "nodes n a:NoSchedule", wrong: "only clusters can be tainted"},
		"an effect of nodes only":   {args: "clusters east a:PreferNoSchedule", wrong: `must be NoSchedule or NoExecute, not "PreferNoSchedule"`},
		"no taint":                  {args: "clusters east", wrong: "the taint is missing"},
		"a name after a taint":      {args: "clusters east a:NoSchedule west", wrong: `"west" follows a taint`},
		"an unknown effect":         {args: "clusters east a:Never", wrong: `not "Never"`},
		"no effect":                 {args: "clusters east a=b", wrong: `not ""`},
		"a bad key":                 {args: "clusters east a/b/c:NoSchedule", wrong: `key "a/b/c"`},
		"a bad value":               {args: "clusters east a=b=c:NoSchedule", wrong: `value "b=c"`},
		"given twice":               {args: "clusters east a=1:NoSchedule a=2:NoSchedule", wrong: "a:NoSchedule is given twice"},
		"set and removed":           {args: "clusters east a=1:NoSchedule a:NoSchedule-", wrong: "a:NoSchedule cannot be both"},
		"set and removed by a key":  {args: "clusters east a=1:NoSchedule a-", wrong: "a:NoSchedule cannot be both"},
		"removed with a bad effect": {args: "clusters east a:-", wrong: `not ""`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			names, got, err := parseTaintArguments(strings.Fields(test.args))
			if test.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), test.wrong) || command.ExitCode(err) != command.ExitUsage {
					t.Errorf("got %v, want wrong usage with %q", err, test.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.names, names); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(taintChanges{})); diff != "" {
				t.Errorf("taints (-want +got):\n%s", diff)
			}
		})
	}
}

func TestApplyTaintChanges(t *testing.T) {
	tests := map[string]struct {
		args      string
		overwrite bool
		want      []corev1.Taint
		done      string
		wrong     string
	}{
		"a new taint comes last": {
			args: "b:NoExecute", done: "tainted",
			want: []corev1.Taint{{Key: "a", Value: "1", Effect: "NoSchedule"}, {Key: "a", Effect: "NoExecute"}, {Key: "b", Effect: "NoExecute"}},
		},
		"one effect is removed": {args: "a:NoExecute-", done: "untainted", want: []corev1.Taint{{Key: "a", Value: "1", Effect: "NoSchedule"}}},
		"a key is removed":      {args: "a-", done: "untainted"},
		"another value": {
			args: "a=2:NoSchedule", overwrite: true, done: "modified",
			want: []corev1.Taint{{Key: "a", Value: "2", Effect: "NoSchedule"}, {Key: "a", Effect: "NoExecute"}},
		},
		"one taint is set and one is removed": {
			args: "b:NoSchedule a:NoExecute-", done: "modified",
			want: []corev1.Taint{{Key: "a", Value: "1", Effect: "NoSchedule"}, {Key: "b", Effect: "NoSchedule"}},
		},
		"another value without --overwrite": {args: "a=2:NoSchedule", wrong: "cluster east already has a taint(s) with same effect(s) and --overwrite is false: --overwrite gives them another value"},
		"a key is reported once":            {args: "a=2:NoSchedule c:NoExecute a=2:NoExecute", wrong: "cluster east already has a taint(s) with same effect(s) and --overwrite is false: --overwrite gives them another value"},
		"removing a missing taint":          {args: "b:NoSchedule-", wrong: `cluster east: taint "b:NoSchedule" not found`},
		"removing a missing key":            {args: "b-", wrong: `cluster east: taint "b" not found`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			existing := []corev1.Taint{{Key: "a", Value: "1", Effect: "NoSchedule"}, {Key: "a", Effect: "NoExecute"}}
			_, wanted, err := parseTaintArguments(append([]string{"clusters", "east"}, strings.Fields(test.args)...))
			if err != nil {
				t.Fatal(err)
			}
			got, done, err := wanted.apply("east", existing, test.overwrite)
			if test.wrong != "" {
				if err == nil || err.Error() != test.wrong {
					t.Errorf("got %v, want %q", err, test.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("taints (-want +got):\n%s", diff)
			}
			if done != test.done {
				t.Errorf("done %q, want %q", done, test.done)
			}
		})
	}
}

func FuzzTaintArguments(f *testing.F) {
	for _, seed := range []string{"a=b:NoSchedule", "a-", "a:NoExecute-", "=:-", "x.io/a=:NoSchedule", ":", "-"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, wanted, err := parseTaintArguments([]string{"clusters", "east", text})
		if err != nil {
			if command.ExitCode(err) != command.ExitUsage {
				t.Errorf("%q: %v is not a usage error", text, err)
			}
			return
		}
		if len(wanted.set)+len(wanted.remove) != 1 {
			t.Errorf("%q is not one taint: %+v", text, wanted)
		}
	})
}

func TestDescribeEvictionReport(t *testing.T) {
	tests := map[string]struct {
		reported *metav1.Condition
		want     string
	}{
		"evictions are on":  {&metav1.Condition{Status: metav1.ConditionTrue, Message: "on"}, ""},
		"evictions are off": {&metav1.Condition{Status: metav1.ConditionFalse, Message: "off: set a flag"}, "off: set a flag"},
		"no report":         {nil, "has not reported whether NoExecute taints evict workloads: see the condition TaintsEvict in kubectl describe cluster east"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := describeEvictionReport("east", test.reported)
			if !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
