package membership

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/console"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/registration"
)

func TestTokenTable(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	both := []string{registration.UsageSigning, registration.UsageAuthentication}
	tokens := []registration.Token{
		{ID: "abcdef", Secret: "0123456789abcdef", Expires: now.Add(23 * time.Hour), Usages: both, Groups: []string{"system:bootstrappers:a", "system:bootstrappers:b"}, Description: "edge"},
		{ID: "ghijkl", Secret: "0123456789abcdef"},
		{ID: "mnopqr", Secret: "0123456789abcdef", Expires: now.Add(-time.Second)},
	}
	want := []string{
		"TOKEN                     TTL         EXPIRES                USAGES                   DESCRIPTION   EXTRA GROUPS",
		"abcdef.0123456789abcdef   23h         2026-07-02T11:00:00Z   signing,authentication   edge          system:bootstrappers:a,system:bootstrappers:b",
		"ghijkl.0123456789abcdef   <forever>   <never>                <none>                   <none>        <none>",
		"mnopqr.0123456789abcdef   <expired>   2026-07-01T11:59:59Z   <none>                   <none>        <none>",
	}
	var out strings.Builder
	var format console.Format
	if err := format.Print(&out, newTokenOutput(tokens, now)); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	for i := range got {
		got[i] = strings.TrimRight(got[i], " ")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestTokenFormats(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	tokens := []registration.Token{
		{ID: "abcdef", Secret: "0123456789abcdef", Expires: now.Add(time.Hour), Usages: []string{registration.UsageSigning}, Groups: []string{"system:bootstrappers:a"}, Description: "edge"},
		{ID: "ghijkl", Secret: "0123456789abcdef"},
	}
	tests := map[string]struct {
		format string
		tokens []registration.Token
		want   string
	}{
		"IDs, for token delete": {console.Name, tokens, "abcdef\nghijkl\n"},
		"YAML": {console.YAML, tokens, `tokens:
- description: edge
  expires: "2026-07-01T13:00:00Z"
  groups:
  - system:bootstrappers:a
  token: abcdef.0123456789abcdef
  usages:
  - signing
- token: ghijkl.0123456789abcdef
`},
		"JSON of no token":  {console.JSON, nil, "{\n    \"tokens\": []\n}\n"},
		"names of no token": {console.Name, nil, ""},
		"a wide table": {console.Wide, tokens[1:], "" +
			"TOKEN                     TTL         EXPIRES   USAGES   DESCRIPTION   EXTRA GROUPS   SECRET                               SCOPE\n" +
			"ghijkl.0123456789abcdef   <forever>   <never>   <none>   <none>        <none>         kube-system/bootstrap-token-ghijkl   <none>\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			format, out := console.Format(test.format), strings.Builder{}
			if err := format.Print(&out, newTokenOutput(test.tokens, now)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRegisterCommand(t *testing.T) {
	token := registration.Token{ID: "abcdef", Secret: "0123456789abcdef"}
	got := registerCommand("kubectl karmada", "10.0.0.1:5443", token, []registration.Pin{{1}, {2}})
	want := "kubectl karmada register 10.0.0.1:5443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:01" + strings.Repeat("0", 62) + ",sha256:02" + strings.Repeat("0", 62)
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	token.Scope.ClusterName = "east"
	if got := registerCommand("kubectl karmada", "10.0.0.1:5443", token, []registration.Pin{{1}, {2}}); got != want+" --cluster-name east" {
		t.Errorf("got %s, want the name of the cluster", got)
	}
}

func TestRegisterEndpoint(t *testing.T) {
	for host, want := range map[string]string{
		"https://10.0.0.1:5443": "10.0.0.1:5443", "10.0.0.1:5443": "10.0.0.1:5443", "https://karmada.example/": "karmada.example:443",
		"https://[::1]:5443": "[::1]:5443", "https://[::1]": "[::1]:443",
	} {
		got, err := registerEndpoint(&rest.Config{Host: host})
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", host, got, err, want)
		}
	}
	if got, err := registerEndpoint(&rest.Config{Host: "https://example.com/k8s/clusters/c"}); err == nil || !strings.Contains(err.Error(), "without a path") {
		t.Errorf("below a path: got %q, %v", got, err)
	}
}

func TestValidateCreate(t *testing.T) {
	tests := map[string]struct {
		token        registration.Token
		ttl          time.Duration
		printCommand bool
		want         string
	}{
		"the default":                            {},
		"an invalid cluster name":                {token: registration.Token{Scope: agent.Scope{ClusterName: "East"}}, want: `cluster name "East"`},
		"an invalid label":                       {token: registration.Token{Scope: agent.Scope{Labels: map[string]string{"tier": "a b"}}}, want: "label tier=a b"},
		"a negative TTL":                         {ttl: -time.Second, want: "--ttl must not be negative"},
		"an unknown usage":                       {token: registration.Token{Usages: []string{"cooking"}}, want: "choose from signing, authentication"},
		"usage signing only":                     {token: registration.Token{Usages: []string{registration.UsageSigning}}},
		"a command without usage authentication": {token: registration.Token{Usages: []string{registration.UsageSigning}}, printCommand: true, want: "needs a token with usage authentication"},
		"a command with default":                 {printCommand: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := validateTokenCreate(test.token, test.ttl, test.printCommand)
			if test.want == "" {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || command.ExitCode(err) != command.ExitUsage {
				t.Errorf("got %v, want wrong usage: %s", err, test.want)
			}
		})
	}
}
