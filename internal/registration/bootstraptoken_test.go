package registration

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"pgregory.net/rapid"

	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/pki"
)

func TestTokenSecretRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		token := Token{
			ID: rapid.StringMatching(`[a-z0-9]{6}`).Draw(t, "id"), Secret: rapid.StringMatching(`[a-z0-9]{16}`).Draw(t, "secret"),
			Usages:      rapid.SampledFrom([][]string{{UsageSigning}, {UsageAuthentication}, {UsageSigning, UsageAuthentication}}).Draw(t, "usages"),
			Groups:      rapid.SampledFrom([][]string{nil, {agent.BootstrapGroup}, {agent.BootstrapGroup, "system:bootstrappers:x"}}).Draw(t, "groups"),
			Description: rapid.String().Draw(t, "description"),
			Scope:       rapid.SampledFrom([]agent.Scope{{}, {ClusterName: "east"}, {Labels: map[string]string{"tier": "bronze"}, Region: "eu"}}).Draw(t, "scope"),
		}
		if rapid.Bool().Draw(t, "expires") {
			token.Expires = time.Unix(rapid.Int64Range(1, 1<<33).Draw(t, "expiration"), 0).UTC()
		}
		got, err := parseTokenSecret(token.newSecret())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(token, got); diff != "" {
			t.Errorf("token (-stored +read):\n%s", diff)
		}
	})
}

func TestParseMalformedSecret(t *testing.T) {
	tests := map[string]struct {
		change func(*corev1.Secret)
		want   string
	}{
		"no secret":              {func(s *corev1.Secret) { delete(s.Data, "token-secret") }, "a token is six characters"},
		"upper case":             {func(s *corev1.Secret) { s.Data["token-id"] = []byte("ABCDEF") }, "a token is six characters"},
		"another name":           {func(s *corev1.Secret) { s.Name = "bootstrap-token-x" }, "its name does not match its token-id abcdef"},
		"a malformed expiration": {func(s *corev1.Secret) { s.Data["expiration"] = []byte("tomorrow") }, `expiration "tomorrow" is not a time`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			secret := Token{ID: "abcdef", Secret: "0123456789abcdef"}.newSecret()
			test.change(secret)
			if _, err := parseTokenSecret(secret); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		token Token
		want  string
	}{
		"the default":              {Token{}, ""},
		"an unknown usage":         {Token{Usages: []string{UsageSigning, "cooking"}}, "usages signing,cooking: choose from signing, authentication"},
		"another group":            {Token{Groups: []string{"system:masters"}}, `group "system:masters"`},
		"a group in several lines": {Token{Groups: []string{agent.BootstrapGroup + "\nx"}}, "a group must begin with"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := test.token.Validate()
			if test.want == "" && err == nil {
				return
			}
			if err == nil || test.want == "" || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestParseID(t *testing.T) {
	for text, want := range map[string]string{
		"abcdef": "abcdef", "abcdef.0123456789abcdef": "abcdef",
		"": "", "abcde": "", "ABCDEF": "", "abcdef.": "", "abcdef.0123456789abcde": "", "abcdef\n": "", "abcdef.0123456789abcdef.x": "",
	} {
		if got, err := ParseTokenID(text); got != want || (err == nil) != (want != "") {
			t.Errorf("ParseID(%q) = %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestDeleteErrors(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"secrets \"%s\" not found"}`, path.Base(r.URL.Path))
	}))
	t.Cleanup(server.Close)
	err := DeleteToken(t.Context(), &rest.Config{Host: server.URL}, "abcdef")
	if want := `err: secrets "bootstrap-token-abcdef" not found`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a deleted token: got %v, want %q", err, want)
	}
	if _, err := ParseTokenID("abc"); err == nil || !strings.Contains(err.Error(), "given token didn't match pattern") {
		t.Errorf("a malformed ID: got %v", err)
	}
}

func TestCAPins(t *testing.T) {
	authority, err := pki.Dir{Path: t.TempDir()}.EnsureAuthority("ca", "karmada")
	if err != nil {
		t.Fatal(err)
	}
	pins, err := CAPins(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: append(authority.PEM(), authority.PEM()...)}})
	if err != nil || len(pins) != 2 || pins[0] != pins[1] {
		t.Fatalf("pins %v, %v, want two equal pins", pins, err)
	}
	if got, err := ParsePin(pins[0].String()); err != nil || got != pins[0] {
		t.Errorf("ParsePin(%q) = %v, %v", pins[0], got, err)
	}
	if _, err := CAPins(&rest.Config{}); err == nil || !strings.Contains(err.Error(), "has no CA certificates") {
		t.Errorf("without a CA: %v", err)
	}
}

func FuzzParsePin(f *testing.F) {
	f.Add("sha256:" + strings.Repeat("ab", 32))
	f.Add("sha256:")
	f.Add("md5:00")
	f.Fuzz(func(t *testing.T, text string) {
		pin, err := ParsePin(text)
		if err == nil && pin.String() != strings.ToLower(text) {
			t.Errorf("ParsePin(%q) = %s", text, pin)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add("abcdef.0123456789abcdef")
	f.Add("abcdef.0123456789abcdef\n")
	f.Fuzz(func(t *testing.T, text string) {
		token, err := ParseToken(text)
		if err == nil && token.String() != text {
			t.Errorf("Parse(%q) = %s", text, token)
		}
	})
}
