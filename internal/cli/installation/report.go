package installation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/cli/membership"
	"karmada.io/karmada/internal/install"
	"karmada.io/karmada/internal/install/rendering"
	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/registration"
)

// Files in the data directory.
const (
	kubeconfigFile = "karmada-apiserver.config"
	agentFile      = "karmada-agent.yaml"
	estimatorFile  = "karmada-scheduler-estimator.yaml"
)

// tokenLifetime is the lifetime of the token that init prints.
const tokenLifetime = 24 * time.Hour

func (o *initOptions) kubeconfigPath() string {
	return filepath.Join(o.KarmadaDataPath, kubeconfigFile)
}

// writeFiles writes the kubeconfig, a copy of the certificates, and example manifests. It writes only files
// that differ.
func (o *initOptions) writeFiles(installer *install.Installer, result *install.Result) error {
	if err := writeFile(o.kubeconfigPath(), result.Kubeconfig, 0o600); err != nil {
		return err
	}
	for name, data := range result.Files {
		mode := os.FileMode(0o600)
		if strings.HasSuffix(name, pki.CertSuffix) {
			mode = 0o644
		}
		if err := writeFile(filepath.Join(o.KarmadaPKIPath, name), data, mode); err != nil {
			return err
		}
	}
	examples, err := exampleManifests(installer.Installation, installer.ExternalURL())
	if err != nil {
		return err
	}
	for name, text := range examples {
		if err := writeFile(filepath.Join(o.KarmadaDataPath, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// writeFile replaces the file if its content differs.
func writeFile(path string, data []byte, mode os.FileMode) error {
	existing, err := os.ReadFile(path)
	if err == nil && bytes.Equal(existing, data) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading an earlier file: %w", err)
	}
	return pki.WriteFile(path, data, mode)
}

// exampleManifests returns manifests for an agent and an estimator by file name. Users replace the names in
// capital letters.
func exampleManifests(installation rendering.Installation, server string) (map[string][]byte, error) {
	kubeconfig := values{"server": server, "caCrt": "CA_CERTIFICATE", "crt": "CLIENT_CERTIFICATE", "key": "CLIENT_KEY"}
	rows := map[string]values{
		agentFile: {"installMode": "agent", "agent": values{"clusterName": "CLUSTER_NAME", "kubeconfig": kubeconfig}},
		estimatorFile: {"installMode": "component", "components": []any{"schedulerEstimator"}, "schedulerEstimator": values{
			"memberClusters": []any{values{"clusterName": "member-cluster-name", "kubeconfig": kubeconfig}},
		}},
	}
	images := rendering.LocalImage()
	if defaults, ok := installation.Values["componentDefaults"]; ok {
		images = values{"componentDefaults": defaults}
	}
	files := map[string][]byte{}
	for name, over := range rows {
		installation.Values = rendering.Merge(images, over)
		objects, err := installation.Host()
		if err != nil {
			return nil, fmt.Errorf("rendering the example %s: %w", name, err)
		}
		if files[name], err = encodeObjects(objects); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func encodeObjects[T client.Object](objects []T) ([]byte, error) {
	var text bytes.Buffer
	for _, object := range objects {
		encoded, err := yaml.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", object.GetName(), err)
		}
		text.WriteString("---\n")
		text.Write(encoded)
	}
	return text.Bytes(), nil
}

// print prints the host cluster's objects.
func (o *initOptions) print(ctx context.Context, program *command.Program, installer *install.Installer) error {
	objects, err := installer.Render(ctx)
	if err != nil {
		return err
	}
	if o.output == "yaml" {
		text, err := encodeObjects(objects)
		if err != nil {
			return err
		}
		_, err = program.Out.Write(text)
		return err
	}
	if err := json.NewEncoder(program.Out).Encode(values{"apiVersion": "v1", "kind": "List", "items": objects}); err != nil {
		return fmt.Errorf("encoding the objects: %w", err)
	}
	return nil
}

// report prints the result and the next steps.
func (o *initOptions) report(ctx context.Context, program *command.Program, result *install.Result, took time.Duration) error {
	if result.Written == 0 {
		fmt.Fprintf(program.Out, "Karmada is installed in namespace %s, and nothing had to be changed (%.1fs).\n", o.hostFlags.Namespace,
			took.Seconds())
	} else {
		fmt.Fprintf(program.Out, "Karmada is installed in namespace %s (%.1fs, %d objects written).\n", o.hostFlags.Namespace, took.Seconds(),
			result.Written)
	}
	register := program.Name + " --kubeconfig " + o.kubeconfigPath() + " token create --print-register-command"
	if result.IsFirst {
		created, err := registration.CreateToken(ctx, result.Karmada,
			registration.Token{Expires: time.Now().Add(tokenLifetime), Description: "created by init"})
		if err != nil {
			return fmt.Errorf("creating a token for the registration of clusters: %w", err)
		}
		if register, err = membership.RegisterCommand(program.Name, result.Karmada, created); err != nil {
			return err
		}
	} else {
		register = "$(" + register + ")"
	}
	fmt.Fprintf(program.Out, nextSteps, o.kubeconfigPath(), program.Name, register)
	return nil
}

// nextSteps is printed after a successful installation. Its arguments are the kubeconfig's path, the
// program's name, and the register command.
const nextSteps = `
Use it:
  export KUBECONFIG=%[1]s
  kubectl get clusters

Join a cluster in push mode, in which the control plane connects to the cluster:
  %[2]s join CLUSTER_NAME --kubeconfig %[1]s --cluster-kubeconfig=MEMBER_KUBECONFIG

Register a cluster in pull mode, in which the cluster connects to the control plane.
Run this command with the kubeconfig of the cluster:
  %[3]s --cluster-name=CLUSTER_NAME
`
