package up

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"karmada.io/karmada/internal/programs/gates"
)

// newMembers returns a new installation's members.
func newMembers(count int) []string {
	members, _ := resizeMembers(nil, count)
	return members
}

func TestResizeMembers(t *testing.T) {
	for name, test := range map[string]struct {
		before           []string
		count            int
		members, removed []string
	}{
		"a new installation":          {count: 2, members: []string{"member1", "member2"}},
		"one more":                    {before: []string{"member1"}, count: 2, members: []string{"member1", "member2"}},
		"a removed member comes back": {before: []string{"member1", "member3"}, count: 3, members: []string{"member1", "member3", "member2"}},
		"named members count":         {before: []string{"edge", "member1"}, count: 3, members: []string{"edge", "member1", "member2"}},
		"fewer":                       {before: []string{"member1", "edge"}, count: 1, members: []string{"member1"}, removed: []string{"edge"}},
		"none":                        {before: []string{"edge"}, count: 0, members: []string{}, removed: []string{"edge"}},
	} {
		t.Run(name, func(t *testing.T) {
			members, removed := resizeMembers(test.before, test.count)
			if diff := cmp.Diff(append([][]string{test.members}, test.removed), append([][]string{members}, removed)); diff != "" && (len(removed) > 0 || len(test.removed) > 0 || len(members) > 0) {
				t.Errorf("members and removed ones (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRegionsOfMembersAreKept(t *testing.T) {
	state := storedState{Members: []string{"member1", "edge", "member3"}}
	state.assignRegions()
	want := map[string]string{"member1": "east", "edge": "west", "member3": "north"}
	if diff := cmp.Diff(want, state.Regions); diff != "" {
		t.Fatalf("regions (-want +got):\n%s", diff)
	}
	state.Members = []string{"member3", "member6", "edge"}
	want["member6"] = "west"
	state.assignRegions()
	if diff := cmp.Diff(want, state.Regions); diff != "" {
		t.Errorf("regions after a change (-want +got):\n%s", diff)
	}
}

func TestSettingsApplyToLaterStarts(t *testing.T) {
	given := func(flags ...string) func(string) bool {
		return func(flag string) bool { return strings.Contains(" "+strings.Join(flags, " ")+" ", " "+flag+" ") }
	}
	first := Options{Components: []string{"*", "-karmada-webhook"}, Gates: gates.New(), ExtraConfig: []string{"a.b=c"}, BindAddress: "10.0.0.5", AuditLog: "/log"}
	if err := first.Gates.Set("Failover=true"); err != nil {
		t.Fatal(err)
	}
	stored := first.settings()
	for name, test := range map[string]struct {
		options Options
		given   []string
		want    string
		kept    string
	}{
		"no flags": {
			want: "--components='*,-karmada-webhook' --feature-gates=Failover=true --extra-config=a.b=c --bind-address=10.0.0.5 --audit-log=/log --failover=false",
			kept: "--components='*,-karmada-webhook' --feature-gates=Failover=true --extra-config=a.b=c --bind-address=10.0.0.5 --audit-log=/log --failover=false",
		},
		"empty values are the defaults": {
			options: Options{ExtraConfig: []string{""}}, given: []string{"components", "feature-gates", "extra-config", "bind-address", "audit-log"},
			want: "--failover=false", kept: "--failover=false",
		},
		"other values": {
			options: Options{ExtraConfig: []string{"x.y=z"}, Failover: true}, given: []string{"components", "feature-gates", "extra-config", "failover"},
			want: "--extra-config=x.y=z --bind-address=10.0.0.5 --audit-log=/log", kept: "--bind-address=10.0.0.5 --audit-log=/log",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := test.options
			o.Gates, o.Components, o.BindAddress = gates.New(), allComponents, "127.0.0.1"
			if err := o.restoreSettings(stored, given(test.given...)); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(o.settings().flags(isNoFlag), " "); got != test.want {
				t.Errorf("the settings are\n%s\nwant\n%s", got, test.want)
			}
			if got := strings.Join(stored.flags(given(test.given...)), " "); got != test.kept {
				t.Errorf("the kept settings are\n%s\nwant\n%s", got, test.kept)
			}
		})
	}
}

func TestFailoverSetsGateAndFlags(t *testing.T) {
	for name, test := range map[string]struct {
		failover bool
		gates    string
		enabled  bool
		flags    int
	}{
		"on":                           {failover: true, enabled: true, flags: 2},
		"off":                          {},
		"the gate is disabled":         {failover: true, gates: "Failover=false"},
		"off, but the gate is enabled": {gates: "Failover=true", enabled: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Failover: test.failover, Gates: gates.New()}
			if err := o.Gates.Set(test.gates); err != nil {
				t.Fatal(err)
			}
			flags := o.failoverConfig()
			if len(flags) != test.flags || o.Gates.Enabled(gates.Failover) != test.enabled {
				t.Errorf("flags %q and gate %t, want %d flags and gate %t", flags, o.Gates.Enabled(gates.Failover), test.flags, test.enabled)
			}
		})
	}
}

// TestChangesNeedToken starts no member, because the changes in this test are rejected before.
func TestChangesNeedToken(t *testing.T) {
	dir := dataDir{t.TempDir()}
	i := &installation{dir: dir, state: storedState{Members: newMembers(2), SkipJoin: true}}
	release, err := dir.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	stop, err := i.serveChanges(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer i.wg.Wait()
	defer stop()
	defer cancel()

	var out strings.Builder
	two, one := 2, 1
	if err := requestChange(ctx, dir, memberChange{Members: &two}, &out); err != nil || !strings.Contains(out.String(), "No change: the members are member1, member2") {
		t.Errorf("with as many members as before: %v, %q", err, out.String())
	}
	if err := requestChange(ctx, dir, memberChange{Members: &one}, &out); err == nil || !strings.Contains(err.Error(), "karmada member remove member2") {
		t.Errorf("with fewer members: %v", err)
	}
	for name, change := range map[string]memberChange{
		"a negative number":               {Members: ptr.To(-5)},
		"too many members":                {Members: ptr.To(maxMembers + 1)},
		"more members in pull mode":       {Members: &two, PullMembers: 99},
		"two changes":                     {Add: "edge", Remove: "member1"},
		"no change":                       {},
		"the name of a server":            {Add: "karmada-apiserver"},
		"the name of a port":              {Add: "estimator-member1"},
		"the name of a log":               {Add: "output"},
		"a region that is no label value": {Add: "edge", Region: "a b"},
	} {
		if err := requestChange(ctx, dir, change, &out); err == nil || errors.Is(err, errEndedEarly) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := requestChange(ctx, dir, memberChange{Remove: "edge"}, &out); err == nil || !strings.Contains(err.Error(), "the members are: member1, member2") {
		t.Errorf("removing an unknown member: %v", err)
	}
	if err := requestChange(ctx, dir, memberChange{Add: "member1"}, &out); err == nil || !strings.Contains(err.Error(), "already a member") {
		t.Errorf("adding a member twice: %v", err)
	}
	i.changeMu.Lock()
	err = requestChange(ctx, dir, memberChange{Members: &two}, &out)
	i.changeMu.Unlock()
	if err == nil || !strings.Contains(err.Error(), errChangeInProgress.Error()) {
		t.Errorf("during another change: %v", err)
	}
	if err := os.WriteFile(dir.changesTokenFile(), []byte("guessed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := requestChange(ctx, dir, memberChange{Members: &two}, &out); !errors.Is(err, errEndedEarly) {
		t.Errorf("with a wrong token: %v", err)
	}
}

func TestInvalidChangeRequestsAreIgnored(t *testing.T) {
	i := &installation{}
	for _, text := range []string{"{", "[]", `{"token":1}`, `{"token":""}`, strings.Repeat("x", 2*maxChangeRequest)} {
		client, server := net.Pipe()
		_ = client.SetDeadline(time.Now().Add(time.Minute))
		done := make(chan struct{})
		go func() {
			defer close(done)
			i.serveChange(t.Context(), server, "token")
		}()
		_, _ = client.Write([]byte(text))
		if text == "{" {
			_ = client.Close()
		}
		var e event
		if err := json.NewDecoder(client).Decode(&e); err == nil {
			t.Errorf("request %.20q has the response %v", text, e)
		}
		<-done
	}
}
