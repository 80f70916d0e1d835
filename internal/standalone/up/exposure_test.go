package up

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

var errConfinement = errors.New("no confinement")

func TestProgramsOfPodsAreOffWhereOthersMayComeIn(t *testing.T) {
	yes, no := true, false
	tests := map[string]struct {
		address     string
		given       *bool
		confinement error
		want        string
	}{
		"the default":                         {address: "127.0.0.1"},
		"another loopback address":            {address: "127.1.2.3"},
		"loopback of the other family":        {address: "::1"},
		"all addresses":                       {address: "0.0.0.0", want: "--bind-address 0.0.0.0 lets other machines in"},
		"all addresses of the other family":   {address: "::", want: "lets other machines in"},
		"an address of a network":             {address: "10.0.0.5", want: "give --member-programs"},
		"an address of a network, allowed":    {address: "10.0.0.5", given: &yes},
		"a kernel that cannot confine":        {address: "127.0.0.1", confinement: errConfinement, want: "with all your rights"},
		"a kernel that cannot, allowed":       {address: "127.0.0.1", confinement: errConfinement, given: &yes},
		"turned off":                          {address: "127.0.0.1", given: &no, want: "--member-programs=false"},
		"turned off where it would be anyway": {address: "0.0.0.0", given: &no, want: "--member-programs=false"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := Options{BindAddress: test.address, MemberPrograms: test.given}.programsOff(test.confinement)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestADataDirectoryBelongsToItsOwnerAlone(t *testing.T) {
	dir := made(t)
	if err := os.Chmod(dir.path, 0o755); err != nil { //nolint:gosec // that is the attack
		t.Fatal(err)
	}
	if err := dir.create(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir.path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its mode is %v (%v)", info.Mode(), err)
	}
	if os.Getuid() != 0 {
		return // Only root can give a directory away.
	}
	given := made(t)
	if err := os.Chown(given.path, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if err := given.create(); err == nil || !strings.Contains(err.Error(), "another user") {
		t.Errorf("a directory of another user is taken: %v", err)
	}
}

func TestMembersWithAgentsWhereProgramsAreOff(t *testing.T) {
	three := memberNames(3)
	open := Options{BindAddress: "10.0.0.5", Members: 3, PullMembers: -1}
	tests := map[string]struct {
		before     state
		given      Options
		pull, idle []string
		told       string
		fails      bool
	}{
		"at first all are in push mode":            {given: open, told: "member3: joined without an agent"},
		"one that is registered stays and is idle": {before: state{Members: three, Pull: three[2:]}, given: open, pull: three[2:], idle: three[2:], told: "member3: no agent runs there"},
		"nothing is said about members": {
			before: state{Members: three, Pull: three[2:]}, given: Options{BindAddress: "10.0.0.5", Members: -1}, pull: three[2:], idle: three[2:], told: "give --member-programs",
		},
		"agents that are asked for": {given: Options{BindAddress: "10.0.0.5", Members: 3, PullMembers: 1}, fails: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var told strings.Builder
			test.before.Members, test.before.Pull = slices.Clone(test.before.Members), slices.Clone(test.before.Pull)
			i := &installation{options: test.given, state: test.before, tell: newProgress(func(e event) { told.WriteString(e.Text) })}
			err := i.remember()
			if (err != nil) != test.fails {
				t.Fatalf("error %v, want one: %t", err, test.fails)
			}
			if test.fails {
				return
			}
			if diff := cmp.Diff([][]string{test.pull, test.idle}, [][]string{i.state.Pull, i.idle}); diff != "" {
				t.Errorf("members with an agent, and those whose agent does not run (-want +got):\n%s", diff)
			}
			if !strings.Contains(told.String(), test.told) {
				t.Errorf("told %q, want %q", told.String(), test.told)
			}
		})
	}
}

// TestAMemberLearnsWhetherProgramsAreOff takes the way of the decision: from the
// installation by the command line of the member's process to its cluster.
func TestAMemberLearnsWhetherProgramsAreOff(t *testing.T) {
	yes := true
	for name, test := range map[string]struct {
		off        error
		given      *bool
		unconfined bool
	}{
		"on":               {},
		"off":              {off: Options{BindAddress: "0.0.0.0"}.programsOff(nil)},
		"on, as asked for": {given: &yes, unconfined: true},
	} {
		t.Run(name, func(t *testing.T) {
			i := &installation{
				options: Options{MemberPrograms: test.given, CertificateLifetime: time.Hour}, dir: dataDir{"/data"}, programsOff: test.off,
				state: state{Members: memberNames(1), Ports: map[string]int{"member1": 7001}, NodesPerMember: 3},
			}
			child := i.child(0, "member1")
			words := child.command().Args
			if len(words) < 2 || words[1] != memberCommandLine().Name() {
				t.Fatalf("its process runs %q", words)
			}
			var learned memberOptions
			flags := pflag.NewFlagSet("member", pflag.ContinueOnError)
			learned.addFlags(flags)
			if err := flags.Parse(words[2:]); err != nil {
				t.Fatal(err)
			}
			want := child.options
			want.Nodes.Count, want.Nodes.Region, want.Nodes.Zones = 3, topologyOf(0).Region, topologyOf(0).Zones
			if diff := cmp.Diff(want, learned); diff != "" {
				t.Errorf("what the process of the member learns (-want +got):\n%s", diff)
			}
			cluster := learned.cluster()
			if (cluster.ProgramsOff == nil) != (test.off == nil) || test.off != nil && cluster.ProgramsOff.Error() != test.off.Error() || cluster.ProgramsUnconfined != test.unconfined {
				t.Errorf("its cluster has programs off for %v, unconfined %t, want %v, %t", cluster.ProgramsOff, cluster.ProgramsUnconfined, test.off, test.unconfined)
			}
		})
	}
}
