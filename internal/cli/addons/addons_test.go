package addons

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/install"
	"karmada.io/karmada/internal/version"
)

func TestSelectAddons(t *testing.T) {
	tests := map[string]struct {
		args    []string
		cluster string
		want    []string
		skipped int
		wantErr string
		isUsage bool
	}{
		"names in any order are sorted":        {args: []string{install.EstimatorProgram, install.DeschedulerProgram}, cluster: "east", want: []string{install.DeschedulerProgram, install.EstimatorProgram}},
		"all without a cluster":                {args: []string{"all"}, want: []string{install.DeschedulerProgram, install.SearchProgram}, skipped: 2},
		"all with a cluster":                   {args: []string{"all"}, cluster: "east", want: []string{install.DeschedulerProgram, install.EstimatorProgram, install.SearchProgram}, skipped: 1},
		"a repeated name counts once":          {args: []string{install.DeschedulerProgram, install.DeschedulerProgram}, want: []string{install.DeschedulerProgram}},
		"a misspelled name":                    {args: []string{"karmada-deschedular"}, wantErr: "did you mean karmada-descheduler?", isUsage: true},
		"an unknown name":                      {args: []string{"istio"}, wantErr: `there is no addon "istio": use karmada-descheduler, `, isUsage: true},
		"no name":                              {wantErr: "the name of the addon is missing", isUsage: true},
		"an addon that this version lacks":     {args: []string{metricsAdapter}, wantErr: "this version does not have the addon karmada-metrics-adapter yet"},
		"a cluster for an addon that has none": {args: []string{install.DeschedulerProgram}, cluster: "east", wantErr: "--cluster east: only karmada-scheduler-estimator", isUsage: true},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			skipped := 0
			selected, err := selectAddons(test.args, test.cluster, func(string, ...any) { skipped++ })
			var usage *command.UsageError
			if (err != nil) != (test.wantErr != "") || err != nil && !strings.Contains(err.Error(), test.wantErr) || errors.As(err, &usage) != test.isUsage {
				t.Fatalf("error %v, want %q", err, test.wantErr)
			}
			var got []string
			for _, row := range selected {
				got = append(got, row.name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" || skipped != test.skipped {
				t.Errorf("%d skipped, want %d; addons (-want +got):\n%s", skipped, test.skipped, diff)
			}
		})
	}
}

// parseEnable parses the flags of the command enable.
func parseEnable(t *testing.T, args ...string) *enableOptions {
	t.Helper()
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	o, cmd := &enableOptions{addons: map[string]*addonOptions{}}, &cobra.Command{}
	o.addFlags(&command.Program{IOStreams: streams}, cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestImages(t *testing.T) {
	release := "karmada:" + version.Get().ImageTag()
	tests := map[string]struct {
		args []string
		want string
	}{
		"the default image":             {nil, "localhost/karmada/" + release},
		"another registry":              {[]string{"--private-image-registry=registry:5000/k"}, "registry:5000/k/" + release},
		"an image":                      {[]string{"--karmada-scheduler-estimator-image=e:v2"}, "e:v2"},
		"an image and another registry": {[]string{"--karmada-scheduler-estimator-image=e:v2", "--private-image-registry=r"}, "e:v2"},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			s, _ := newTestSession(nil, nil)
			objects, err := s.renderEstimator(t.Context(), parseEnable(t, test.args...).componentValues(install.EstimatorProgram), []byte("{}"))
			if err != nil {
				t.Fatal(err)
			}
			deployment := &appsv1.Deployment{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[len(objects)-1].(*unstructured.Unstructured).Object, deployment); err != nil {
				t.Fatal(err)
			}
			if got := deployment.Spec.Template.Spec.Containers[0].Image; got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func TestValidateEnable(t *testing.T) {
	tests := map[string]struct {
		args    []string
		cluster string
		want    string
	}{
		"a member and its kubeconfig suffice": {[]string{"--member-kubeconfig=f"}, "east", ""},
		"the member is missing":               {[]string{"--member-kubeconfig=f"}, "", "set its name with --cluster"},
		"the kubeconfig is missing":           {nil, "east", "--member-kubeconfig"},
		"the name of a Service is too long":   {[]string{"--member-kubeconfig=f"}, strings.Repeat("a", 40), "which is invalid: must be no more than 63"},
		"a timeout is positive":               {[]string{"--pod-timeout=0"}, "east", "--pod-timeout 0"},
		"a registry without a scheme":         {[]string{"--private-image-registry=https://r.example.com"}, "east", `--private-image-registry "https://r.example.com": it must be a registry`},
		"an image in lower case":              {[]string{"--karmada-scheduler-estimator-image=UPPER/x"}, "east", `--karmada-scheduler-estimator-image "UPPER/x": it must be the name of an image`},
		"at least one replica":                {[]string{"--karmada-estimator-replicas=0"}, "east", "it must be at least 1"},
	}
	estimator, err := selectAddons([]string{install.EstimatorProgram}, "", func(string, ...any) {})
	if err != nil {
		t.Fatal(err)
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			err := parseEnable(t, test.args...).validate(&session{cluster: test.cluster}, estimator)
			if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestEmbedNeedsNoFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), []byte("authority"), 0o600); err != nil {
		t.Fatal(err)
	}
	const prefix = `{apiVersion: v1, kind: Config, current-context: one, clusters: [{name: c, cluster: {server: "https://east", certificate-authority: ca.crt}}, {name: other, cluster: {server: "https://west"}}],
		contexts: [{name: one, context: {cluster: c, user: u}}], users: [{name: u, user: `
	tests := map[string]struct{ user, want string }{
		"files are embedded":        {`{token: t}`, ""},
		"a program cannot run":      {`{exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, interactiveMode: Never}}`, "gets its credentials from a program"},
		"a token file has no value": {`{tokenFile: /token}`, "refers to the token file"},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			path := filepath.Join(dir, "config")
			if err := os.WriteFile(path, []byte(prefix+test.user+"}]}"), 0o600); err != nil {
				t.Fatal(err)
			}
			raw, err := command.Kubeconfig{Path: path}.Loader().RawConfig()
			if err != nil {
				t.Fatal(err)
			}
			content, err := embed(raw, "east")
			if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Fatalf("error %v, want %q", err, test.want)
			}
			if err != nil {
				return
			}
			config, err := clientcmd.Load(content)
			if err != nil || string(config.Clusters["c"].CertificateAuthorityData) != "authority" || len(config.Clusters) != 1 {
				t.Errorf("%v in\n%s", err, content)
			}
		})
	}
}

// newTestSession returns a session with fake clusters. messages contains what it prints.
func newTestSession(host, karmada []client.Object) (s *session, messages *strings.Builder) {
	messages = &strings.Builder{}
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: messages, ErrOut: messages}
	build := func(objects []client.Object) client.Client {
		return fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).Build()
	}
	return &session{program: &command.Program{IOStreams: streams}, hostFlags: command.Host{Namespace: "karmada-system"}, cluster: "east", host: build(host), karmada: build(karmada)}, messages
}

func certificateSecret(installedBy string) *corev1.Secret {
	secret := install.NewSecret("karmada-system", clusterv1alpha1.CertificateSecret, map[string][]byte{
		install.CertKey: []byte("cert"), install.KeyKey: []byte("key"), install.CAKey: []byte("ca"), "ca.key": []byte("never copied"),
	})
	secret.Labels = map[string]string{clusterv1alpha1.InstalledByLabel: installedBy}
	return secret
}

func TestCertificates(t *testing.T) {
	tests := map[string]struct {
		host, karmada []client.Object
		want          []string
		wantErr       string
	}{
		"a host with certificates needs no others":      {host: []client.Object{certificateSecret("")}, karmada: []client.Object{certificateSecret("karmada-up")}},
		"certificates of the control plane are copied":  {karmada: []client.Object{certificateSecret("karmada-up")}, want: []string{"Namespace karmada-system", "Secret karmada-system/karmada-cert"}},
		"an existing namespace is not written":          {host: []client.Object{install.NewNamespace("karmada-system")}, karmada: []client.Object{certificateSecret("karmada-up")}, want: []string{"Secret karmada-system/karmada-cert"}},
		"a copy is renewed":                             {host: []client.Object{install.NewNamespace("karmada-system"), certificateSecret(installerName)}, karmada: []client.Object{certificateSecret("karmada-up")}, want: []string{"Secret karmada-system/karmada-cert"}},
		"a copy stays without its source":               {host: []client.Object{certificateSecret(installerName)}},
		"neither cluster has the certificates":          {wantErr: "install the control plane there first (karmadactl init)"},
		"the authority's key of a source is not copied": {host: []client.Object{install.NewNamespace("karmada-system")}, karmada: []client.Object{certificateSecret("")}, want: []string{"Secret karmada-system/karmada-cert"}},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			s, _ := newTestSession(test.host, test.karmada)
			objects, err := s.certificates(t.Context())
			if (err != nil) != (test.wantErr != "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Fatalf("error %v, want %q", err, test.wantErr)
			}
			var got []string
			for _, object := range objects {
				got = append(got, install.Describe(object))
				if secret, ok := object.(*corev1.Secret); ok && len(secret.Data) != 3 {
					t.Errorf("the copy has the keys %v", secret.Data)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDeschedulerNeedsInstallation(t *testing.T) {
	s, _ := newTestSession([]client.Object{certificateSecret("")}, nil)
	if _, err := enableDescheduler(t.Context(), s, parseEnable(t)); err == nil || !strings.Contains(err.Error(), "Secret karmada-descheduler-config is missing in namespace karmada-system") {
		t.Errorf("error %v", err)
	}
}

func TestLateEstimatorIsReported(t *testing.T) {
	simulatedNode := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{clusterv1alpha1.ProgramNodeLabel: "true"}}}
	tests := map[string]struct {
		nodes   []client.Object
		want    string
		message string
		wantErr string
	}{
		"a late Pod of a cluster causes a warning":       {nil, "karmada-scheduler-estimator-east.karmada-system.svc.cluster.local", "warning: Deployment", ""},
		"a late Pod of a simulated cluster is a failure": {[]client.Object{simulatedNode}, "", "", "is not ready after 1s"},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			s, messages := newTestSession(test.nodes, nil)
			objects, err := s.renderEstimator(t.Context(), values{}, []byte("{}"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.hostApplier().Apply(t.Context(), objects...); err != nil {
				t.Fatal(err)
			}
			got, err := s.awaitAddress(t.Context(), parseEnable(t, "--pod-timeout=1"))
			if (err != nil) != (test.wantErr != "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Fatalf("error %v, want %q", err, test.wantErr)
			}
			if got != test.want || !strings.Contains(messages.String(), test.message) {
				t.Errorf("address %q, want %q; printed:\n%s", got, test.want, messages)
			}
		})
	}
}

func TestStates(t *testing.T) {
	ready := appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1, Conditions: []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
	}}
	deployment := func(status appsv1.DeploymentStatus) []client.Object {
		return []client.Object{&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "karmada-scheduler-estimator-east"}, Status: status}}
	}
	tests := map[string]struct {
		cluster string
		host    []client.Object
		want    string
	}{
		"a ready Deployment":            {"east", deployment(ready), stateEnabled},
		"a Deployment without replicas": {"east", deployment(appsv1.DeploymentStatus{}), stateUnhealthy},
		"no Deployment":                 {"east", nil, stateDisabled},
		"no cluster":                    {"", deployment(ready), stateUnknown},
	}
	row := addon{name: install.EstimatorProgram, deployment: estimatorDeployment}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			s, _ := newTestSession(test.host, nil)
			s.cluster = test.cluster
			if got, err := s.state(t.Context(), row); err != nil || got != test.want {
				t.Errorf("%s, %v; want %s", got, err, test.want)
			}
		})
	}
}

func TestFailingAddonDoesNotStopOthers(t *testing.T) {
	s, printed := newTestSession(nil, nil)
	failure := errors.New("broken")
	fails := func(context.Context, *session, *enableOptions) (int, error) { return 0, failure }
	works := func(context.Context, *session, *enableOptions) (int, error) { return 0, nil }
	err := s.enableAll(t.Context(), []addon{{name: "a", enable: fails}, {name: "b", enable: works}}, nil)
	if !errors.Is(err, failure) || printed.String() != "addon b unchanged\n" {
		t.Errorf("error %v, printed %q", err, printed)
	}
}
