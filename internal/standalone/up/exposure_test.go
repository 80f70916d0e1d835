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

func TestProgramsAreDisabledOnPublicAddress(t *testing.T) {
	yes, no := true, false
	tests := map[string]struct {
		address     string
		flag        *bool
		confinement error
		want        string
	}{
		"the default":                           {address: "127.0.0.1"},
		"another loopback address":              {address: "127.1.2.3"},
		"the IPv6 loopback address":             {address: "::1"},
		"all addresses":                         {address: "0.0.0.0", want: "--bind-address 0.0.0.0 allows access from other machines"},
		"all IPv6 addresses":                    {address: "::", want: "allows access from other machines"},
		"an address of the machine":             {address: "10.0.0.5", want: "set --member-programs"},
		"an address of the machine, enabled":    {address: "10.0.0.5", flag: &yes},
		"a kernel without confinement":          {address: "127.0.0.1", confinement: errConfinement, want: "with all your permissions"},
		"a kernel without confinement, enabled": {address: "127.0.0.1", confinement: errConfinement, flag: &yes},
		"disabled":                              {address: "127.0.0.1", flag: &no, want: "--member-programs=false"},
		"disabled by flag and address":          {address: "0.0.0.0", flag: &no, want: "--member-programs=false"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := Options{BindAddress: test.address, MemberPrograms: test.flag}.programsDisabledReason(test.confinement)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestDataDirIsRestrictedToOwner(t *testing.T) {
	dir := newDataDir(t)
	if err := os.Chmod(dir.path, 0o755); err != nil { // this is the attack
		t.Fatal(err)
	}
	if err := dir.create(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir.path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the mode of the directory is %v (%v)", info.Mode(), err)
	}
	for name, files := range map[string][]string{"an empty directory": nil, "a directory with a certificate authority": {"state.json", "control-plane/pki/ca.crt"}} {
		writable := newDataDir(t, files...)
		for range 2 { // the second start must not accept what the first one rejected
			if err := os.Chmod(writable.path, 0o777); files == nil && err != nil { // this is the attack
				t.Fatal(err)
			}
			err := writable.create()
			if rejected := err != nil && strings.Contains(err.Error(), "chmod 700 "+writable.path); rejected != (files != nil) {
				t.Errorf("%s to which other users can write: %v", name, err)
			}
			if files == nil {
				break
			}
		}
	}
	if os.Getuid() != 0 {
		return // only root can change a directory's owner
	}
	otherOwner := newDataDir(t)
	if err := os.Chown(otherOwner.path, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if err := otherOwner.create(); err == nil || !strings.Contains(err.Error(), "another user") {
		t.Errorf("a directory of another user is accepted: %v", err)
	}
}

func TestPullMembersWithoutPrograms(t *testing.T) {
	three := newMembers(3)
	open := Options{BindAddress: "10.0.0.5", Members: 3, PullMembers: -1}
	tests := map[string]struct {
		before     storedState
		options    Options
		pull, idle []string
		message    string
		wantErr    bool
	}{
		"in the first start all are in push mode": {options: open, message: "member3: joined in push mode"},
		"a registered pull mode member is idle":   {before: storedState{Members: three, PullMembers: three[2:]}, options: open, pull: three[2:], idle: three[2:], message: "member3: no agent runs in these members"},
		"no flags about members": {
			before: storedState{Members: three, PullMembers: three[2:]}, options: Options{BindAddress: "10.0.0.5", Members: -1}, pull: three[2:], idle: three[2:], message: "set --member-programs",
		},
		"requested pull mode members": {options: Options{BindAddress: "10.0.0.5", Members: 3, PullMembers: 1}, wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var message strings.Builder
			test.before.Members, test.before.PullMembers = slices.Clone(test.before.Members), slices.Clone(test.before.PullMembers)
			i := &installation{options: test.options, state: test.before, progress: newProgress(func(e event) { message.WriteString(e.Text) })}
			err := i.updateState()
			if (err != nil) != test.wantErr {
				t.Fatalf("error %v, want one: %t", err, test.wantErr)
			}
			if test.wantErr {
				return
			}
			if diff := cmp.Diff([][]string{test.pull, test.idle}, [][]string{i.state.PullMembers, i.idleMembers}); diff != "" {
				t.Errorf("pull mode members, and idle ones (-want +got):\n%s", diff)
			}
			if !strings.Contains(message.String(), test.message) {
				t.Errorf("the events have text %q, want %q", message.String(), test.message)
			}
		})
	}
}

// TestMemberProcessGetsProgramOptions checks that the installation's decision is passed to a member's
// cluster through the command line of the member's process.
func TestMemberProcessGetsProgramOptions(t *testing.T) {
	yes := true
	for name, test := range map[string]struct {
		disabled   error
		flag       *bool
		unconfined bool
	}{
		"enabled":         {},
		"disabled":        {disabled: Options{BindAddress: "0.0.0.0"}.programsDisabledReason(nil)},
		"enabled by flag": {flag: &yes, unconfined: true},
	} {
		t.Run(name, func(t *testing.T) {
			i := &installation{
				options: Options{MemberPrograms: test.flag, CertificateLifetime: time.Hour}, dir: dataDir{"/data"}, programsDisabled: test.disabled,
				state: storedState{Members: newMembers(1), Ports: map[string]int{"member1": 7001}, Regions: map[string]string{"member1": "east"}, NodesPerMember: 3},
			}
			child := i.newSupervisor("member1")
			args := child.newCommand().Args
			if len(args) < 3 || args[1] != memberCommand().Name() || args[2] != memberRun {
				t.Fatalf("the process of the member runs %q", args)
			}
			var parsed memberOptions
			flags := pflag.NewFlagSet("member", pflag.ContinueOnError)
			parsed.addFlags(flags)
			if err := flags.Parse(args[3:]); err != nil {
				t.Fatal(err)
			}
			want := child.options
			want.Nodes.Count, want.Nodes.Region, want.Nodes.Zones = 3, "east", []string{"east-1", "east-2"}
			if diff := cmp.Diff(want, parsed); diff != "" {
				t.Errorf("options of the member's process (-want +got):\n%s", diff)
			}
			cluster := parsed.cluster()
			if (cluster.ProgramsDisabled == nil) != (test.disabled == nil) || test.disabled != nil && cluster.ProgramsDisabled.Error() != test.disabled.Error() || cluster.AllowUnconfined != test.unconfined {
				t.Errorf("the cluster has programs disabled by %v, unconfined %t, want %v, %t", cluster.ProgramsDisabled, cluster.AllowUnconfined, test.disabled, test.unconfined)
			}
		})
	}
}
