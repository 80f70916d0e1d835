package installation

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/install/rendering"
	"karmada.io/karmada/internal/version"
)

// parseInit parses the flags of init.
func parseInit(t testing.TB, args ...string) *initOptions {
	t.Helper()
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	o, cmd := &initOptions{}, &cobra.Command{}
	o.addFlags(&command.Program{IOStreams: streams}, cmd)
	if err := cmd.ParseFlags(append([]string{"--private-image-registry=registry.example.com"}, args...)); err != nil {
		t.Fatal(err)
	}
	return o
}

// renderInit returns the rendered workloads and Services by kind and name.
func renderInit(t *testing.T, o *initOptions) map[string]*unstructured.Unstructured {
	t.Helper()
	if err := o.validate(); err != nil {
		t.Fatal(err)
	}
	all, err := o.values([]string{"192.0.2.1", "192.0.2.2"})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := rendering.Installation{Release: "karmada", Namespace: o.hostFlags.Namespace, Version: version.Get().GitVersion, Values: all}.Host()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*unstructured.Unstructured{}
	for _, object := range objects {
		byName[object.GetKind()+" "+object.GetName()] = object
	}
	return byName
}

// TestFlagsReachTheObjects requires that each flag changes the rendered object that it is about.
func TestFlagsReachTheObjects(t *testing.T) {
	release, digest := version.Get().ImageTag(), strings.Repeat("0a", 32)
	tests := map[string]struct {
		args   []string
		object string
		path   string
		want   any
	}{
		"the node port":                     {[]string{"--port=30443"}, "Service karmada-apiserver", "spec.ports.0.nodePort", int64(30443)},
		"the default node port":             {nil, "Service karmada-apiserver", "spec.ports.0.nodePort", int64(32443)},
		"the replicas of a component":       {[]string{"--karmada-scheduler-replicas=3"}, "Deployment karmada-scheduler", "spec.replicas", int64(3)},
		"the priority class of a component": {[]string{"--karmada-webhook-priority-class=high"}, "Deployment karmada-webhook", "spec.template.spec.priorityClassName", "high"},
		"one image for all programs":        {nil, "Deployment karmada-apiserver", "spec.template.spec.containers.0.image", "registry.example.com/karmada:" + release},
		"a private registry":                {[]string{"--private-image-registry=registry:5000/k"}, "StatefulSet etcd", "spec.template.spec.containers.0.image", "registry:5000/k/karmada:" + release},
		"an image of its own":               {[]string{"--karmada-webhook-image=registry:5000/webhook:v2"}, "Deployment karmada-webhook", "spec.template.spec.containers.0.image", "registry:5000/webhook:v2"},
		"an image with a digest":            {[]string{"--karmada-webhook-image=webhook@sha256:" + digest}, "Deployment karmada-webhook", "spec.template.spec.containers.0.image", "webhook@sha256:" + digest},
		"an image without a tag":            {[]string{"--etcd-image=registry:5000/etcd"}, "StatefulSet etcd", "spec.template.spec.containers.0.image", "registry:5000/etcd:latest"},
		"an upstream registry":              {[]string{"--kube-image-registry=mirror.example.com"}, "Deployment karmada-apiserver", "spec.template.spec.containers.0.image", "mirror.example.com/kube-apiserver:v1.36.2"},
		"an upstream tag":                   {[]string{"--kube-image-tag=v1.36.3"}, "Deployment kube-controller-manager", "spec.template.spec.containers.0.image", "registry.k8s.io/kube-controller-manager:v1.36.3"},
		"the mirror of a country":           {[]string{"--kube-image-mirror-country=cn"}, "StatefulSet etcd", "spec.template.spec.containers.0.image", "registry.cn-hangzhou.aliyuncs.com/google_containers/etcd:3.6.8-0"},
		"the pull policy":                   {[]string{"--image-pull-policy=Always"}, "StatefulSet etcd", "spec.template.spec.containers.0.imagePullPolicy", "Always"},
		"the pull secrets":                  {[]string{"--image-pull-secrets=a,b"}, "Deployment karmada-webhook", "spec.template.spec.imagePullSecrets.1.name", "b"},
		"the directory of etcd":             {[]string{"--etcd-data=/data"}, "StatefulSet etcd", "spec.template.spec.volumes.1.hostPath.path", "/data"},
		"the node of etcd":                  {[]string{"--etcd-node-selector-labels=disk=ssd,zone=a"}, "StatefulSet etcd", "spec.template.spec.nodeSelector.disk", "ssd"},
		"the volumes of etcd":               {[]string{"--etcd-storage-mode=PVC", "--storage-classes-name=fast", "--etcd-pvc-size=9Gi"}, "StatefulSet etcd", "spec.volumeClaimTemplates.0.spec.resources.requests.storage", "9Gi"},
		"the members of etcd":               {[]string{"--etcd-storage-mode=emptyDir", "--etcd-replicas=3"}, "StatefulSet etcd", "spec.replicas", int64(3)},
		"the DNS domain":                    {[]string{"--host-cluster-domain=corp.local"}, "Deployment karmada-apiserver", "arguments", "--service-account-issuer=https://kubernetes.default.svc.corp.local"},
		"an argument that is new":           {[]string{"--karmada-scheduler-extra-args=--kube-api-qps=7"}, "Deployment karmada-scheduler", "arguments", "--kube-api-qps=7"},
		"an argument with commas":           {[]string{"--karmada-apiserver-extra-args=--enable-admission-plugins=A,B,--v=5"}, "Deployment karmada-apiserver", "arguments", "--enable-admission-plugins=A,B"},
		"an argument that replaces another": {[]string{"--karmada-apiserver-extra-args=--v=5"}, "Deployment karmada-apiserver", "arguments", "--v=5"},
		"an external etcd":                  {[]string{"--external-etcd-servers=https://etcd:2379", "--external-etcd-key-prefix=/k", "--external-etcd-ca-cert-path=a", "--external-etcd-client-cert-path=b", "--external-etcd-client-key-path=c"}, "Deployment karmada-apiserver", "arguments", "--etcd-prefix=/k"},
		"the namespace":                     {[]string{"--namespace=other"}, "Deployment karmada-scheduler", "metadata.namespace", "other"},
		"the gate of failover":              {[]string{"--failover"}, "Deployment karmada-controller-manager", "arguments", "--feature-gates=Failover=true"},
		"the evictions of failover":         {[]string{"--failover"}, "Deployment karmada-controller-manager", "arguments", "--enable-no-execute-taint-eviction=true"},
		"a user's argument for failover":    {[]string{"--failover", "--karmada-controller-manager-extra-args=--enable-no-execute-taint-eviction=false"}, "Deployment karmada-controller-manager", "arguments", "--enable-no-execute-taint-eviction=false"},
		"the taint policies of failover":    {[]string{"--failover"}, "Deployment karmada-webhook", "arguments", "--allow-no-execute-taint-policy=true"},
		"the rules of the network":          {[]string{"--network-policies"}, "NetworkPolicy etcd", "kind", "NetworkPolicy"},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			object := renderInit(t, parseInit(t, test.args...))[test.object]
			if object == nil {
				t.Fatalf("%s is not rendered", test.object)
			}
			if test.path == "arguments" {
				checkArgument(t, object, test.want.(string))
				return
			}
			if got := lookup(object.Object, strings.Split(test.path, ".")...); !cmp.Equal(got, test.want) {
				t.Errorf("%s is %v, want %v", test.path, got, test.want)
			}
		})
	}
}

// checkArgument requires that the container has the argument, and no other argument of its name.
func checkArgument(t *testing.T, workload *unstructured.Unstructured, want string) {
	t.Helper()
	name, _, _ := strings.Cut(want, "=")
	var found []string
	for _, argument := range lookup(workload.Object, "spec", "template", "spec", "containers", "0", "command").([]any) {
		if strings.HasPrefix(argument.(string), name+"=") {
			found = append(found, argument.(string))
		}
	}
	if diff := cmp.Diff([]string{want}, found); diff != "" {
		t.Errorf("arguments %s (-want +got):\n%s", name, diff)
	}
}

// lookup returns the value at a path of keys and indexes, with whole numbers as int64.
func lookup(value any, path ...string) any {
	for _, key := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[key]
		case []any:
			if index := int(key[0] - '0'); index < len(v) {
				value = v[index]
				continue
			}
			return nil
		default:
			return nil
		}
	}
	if number, ok := value.(float64); ok {
		return int64(number)
	}
	return value
}

func TestMistakesInFlags(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"gates that replace those of failover":   {[]string{"--failover", "--karmada-webhook-extra-args=--feature-gates=A=true"}, "--karmada-webhook-extra-args: its --feature-gates replaces the gate that --failover sets: add Failover=true"},
		"an argument without dashes":             {[]string{"--karmada-scheduler-extra-args=v=5"}, `--karmada-scheduler-extra-args "v=5": an argument has the form --key or --key=value`},
		"an argument with a blank":               {[]string{"--etcd-extra-args=-- v"}, "--etcd-extra-args"},
		"a key of an authority without its cert": {[]string{"--ca-key-file=ca.key"}, "--ca-cert-file and --ca-key-file belong together"},
		"a pull policy that does not exist":      {[]string{"--image-pull-policy=Sometimes"}, `--image-pull-policy "Sometimes": use Always, IfNotPresent or Never`},
		"a storage mode that does not exist":     {[]string{"--etcd-storage-mode=nfs"}, `--etcd-storage-mode "nfs": use emptyDir, hostPath or PVC`},
		"replicas on one disk":                   {[]string{"--etcd-replicas=3"}, "--etcd-replicas 3: the storage mode hostPath has one replica"},
		"two members of etcd":                    {[]string{"--etcd-replicas=2", "--etcd-storage-mode=emptyDir"}, "--etcd-replicas 2: use 1 or 3"},
		"volumes without a class":                {[]string{"--etcd-storage-mode=PVC"}, "--storage-classes-name is missing"},
		"a relative path of etcd":                {[]string{"--etcd-data=data"}, `--etcd-data "data"`},
		"an external etcd without certificates":  {[]string{"--external-etcd-servers=https://e:2379"}, "--external-etcd-servers needs"},
		"a client key without its certificate":   {[]string{"--external-etcd-servers=https://e:2379", "--external-etcd-client-key-path=k"}, "belong together"},
		"an address that is none":                {[]string{"--karmada-apiserver-advertise-address=karmada.example.com"}, "must be an IP address"},
		"an external IP that is none":            {[]string{"--cert-external-ip=10.0.0.1,host"}, `--cert-external-ip "host"`},
		"an external name that is none":          {[]string{"--cert-external-dns=a_b"}, `--cert-external-dns "a_b"`},
		"no replicas":                            {[]string{"--karmada-webhook-replicas=0"}, "--karmada-webhook-replicas 0"},
		"a negative time":                        {[]string{"--wait-component-ready-timeout=-1"}, "--wait-component-ready-timeout -1"},
		"a format without a dry run":             {[]string{"-o", "yaml"}, "--output yaml: it needs --dry-run"},
		"a port out of range":                    {[]string{"--port=70000"}, "--port 70000"},
		"a validity of zero":                     {[]string{"--cert-validity-period=0s"}, "--cert-validity-period 0s"},
		"a registry with a scheme":               {[]string{"--private-image-registry=https://registry.example.com"}, `--private-image-registry "https://registry.example.com": it must be a registry with an optional path, in lower case and without https://, such as registry.example.com/karmada`},
		"a registry in upper case":               {[]string{"--private-image-registry=UPPER/x"}, `--private-image-registry "UPPER/x": it must be a registry`},
		"an upstream registry with a slash":      {[]string{"--kube-image-registry=mirror.example.com/"}, `--kube-image-registry "mirror.example.com/": it must be a registry`},
		"an image with a scheme":                 {[]string{"--karmada-webhook-image=https://registry.example.com/webhook:v1"}, `--karmada-webhook-image "https://registry.example.com/webhook:v1": it must be the name of an image`},
		"an image of etcd in upper case":         {[]string{"--etcd-image=Etcd:v3"}, `--etcd-image "Etcd:v3": it must be the name of an image`},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			err := parseInit(t, test.args...).validate()
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("error %v, want %q", err, test.want)
			}
			if command.ExitCode(err) != command.ExitUsage {
				t.Errorf("exit code %d", command.ExitCode(err))
			}
		})
	}
}

const fullConfig = `
apiVersion: config.karmada.io/v1alpha1
kind: KarmadaInitConfig
metadata: {name: example}
spec:
  certificates: {caCertFile: /ca.crt, caKeyFile: /ca.key, externalDNS: [a.example.com, b.example.com], externalIP: [192.0.2.9], validityPeriod: 100h}
  etcd:
    local:
      repository: registry/etcd
      tag: v3
      replicas: 3
      storageMode: PVC
      storageClassesName: fast
      pvcSize: 9Gi
      resources: {requests: {cpu: 200m}}
      tolerations: [{key: dedicated, operator: Exists}]
      extraArgs: [{name: snapshot-count, value: "5000"}]
  hostCluster: {kubeconfig: /host, context: c, domain: corp.local}
  images: {imagePullPolicy: Always, imagePullSecrets: [s], privateRegistry: {registry: r.example.com}}
  components:
    karmadaAPIServer: {replicas: 2, advertiseAddress: 192.0.2.7, networking: {namespace: elsewhere, port: 30001}, serviceAnnotations: {a: b}}
    karmadaScheduler: {replicas: 4, nodeSelector: {disk: ssd}, affinity: {nodeAffinity: {}}, priorityClassName: high}
    karmadaWebhook: {extraArgs: [{name: v, value: "9"}]}
  karmadaDataPath: /data
  karmadaPKIPath: /pki
  waitComponentReadyTimeout: 0
`

func TestFieldsOfAFileReplaceFlags(t *testing.T) {
	o := parseInit(t, "--port=30000", "--karmada-webhook-extra-args=--v=1,--x=2", "--karmada-webhook-replicas=7")
	if err := o.applyConfig([]byte(fullConfig)); err != nil {
		t.Fatal(err)
	}
	rendered := renderInit(t, o)
	for path, want := range map[string]any{
		"StatefulSet etcd/spec.replicas":                                          int64(3),
		"StatefulSet etcd/spec.template.spec.containers.0.image":                  "registry/etcd:v3",
		"StatefulSet etcd/spec.template.spec.containers.0.resources.requests.cpu": "200m",
		"StatefulSet etcd/spec.template.spec.tolerations.0.key":                   "dedicated",
		"StatefulSet etcd/spec.volumeClaimTemplates.0.spec.storageClassName":      "fast",
		"Service karmada-apiserver/spec.ports.0.nodePort":                         int64(30001),
		"Service karmada-apiserver/metadata.annotations.a":                        "b",
		"Service karmada-apiserver/metadata.namespace":                            "elsewhere",
		"Deployment karmada-scheduler/spec.template.spec.nodeSelector.disk":       "ssd",
		"Deployment karmada-scheduler/spec.template.spec.priorityClassName":       "high",
		"Deployment karmada-scheduler/spec.template.spec.containers.0.image":      "r.example.com/karmada:" + version.Get().ImageTag(),
		"Deployment karmada-webhook/spec.replicas":                                int64(7),
	} {
		object, field, _ := strings.Cut(path, "/")
		if got := lookup(rendered[object].Object, strings.Split(field, ".")...); !cmp.Equal(got, want) {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	checkArgument(t, rendered["Deployment karmada-webhook"], "--v=9")
	checkArgument(t, rendered["Deployment karmada-webhook"], "--x=2")
	checkArgument(t, rendered["StatefulSet etcd"], "--snapshot-count=5000")
	if o.readyTimeout() != 0 || o.KarmadaDataPath != "/data" || o.KarmadaPKIPath != "/pki" || o.hostFlags.Path != "/host" || o.Certificates.ValidityPeriod.Hours() != 100 || o.Components.KarmadaAPIServer.AdvertiseAddress != "192.0.2.7" {
		t.Errorf("options %+v", o)
	}
}

func TestMistakesInFiles(t *testing.T) {
	head := "apiVersion: config.karmada.io/v1alpha1\nkind: KarmadaInitConfig\n"
	tests := map[string]struct{ text, want string }{
		"another kind":            {"apiVersion: v1\nkind: Secret", `the file has apiVersion "v1" and kind "Secret": use config.karmada.io/v1alpha1 and KarmadaInitConfig`},
		"an unknown field":        {head + "spec: {replica: 1}", `unknown field "replica"`},
		"a wrong type":            {head + "spec: {waitComponentReadyTimeout: soon}", "decoding the file"},
		"two documents":           {head + "---\n" + head, "several documents"},
		"a Secret of credentials": {head + "spec: {hostCluster: {secretRef: {name: a}}}", "spec.hostCluster.secretRef"},
		"text that is no YAML":    {"{", "decoding the file"},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			if err := parseInit(t).applyConfig([]byte(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
	if err := parseInit(t).readConfig(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "--config") {
		t.Errorf("a missing file: %v", err)
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(fullConfig))
	f.Fuzz(func(t *testing.T, data []byte) {
		o := parseInit(t)
		if err := o.applyConfig(data); err != nil {
			return
		}
		// Values may be rejected, and must not cause a panic.
		_, _ = o.values([]string{"192.0.2.1"})
	})
}

func TestOnlyFilesThatDifferAreWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	for _, content := range []string{"a", "a", "b"} {
		before, _ := os.Stat(file)
		if err := writeFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		after, err := os.Stat(file)
		if err != nil || after.Mode().Perm() != 0o600 {
			t.Fatal(after, err)
		}
		if content == "a" && before != nil && !os.SameFile(before, after) {
			t.Error("an equal file is replaced")
		}
	}
}

func TestExamplesAreManifests(t *testing.T) {
	files, err := exampleManifests(rendering.Installation{Release: "karmada", Namespace: "karmada-system", Version: "v1"}, "https://192.0.2.1:32443")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{agentFile: "kind: Deployment", estimatorFile: "kind: Service"} {
		if !strings.Contains(string(files[name]), want) {
			t.Errorf("%s has no %s", name, want)
		}
	}
}
