package installation

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
)

// API version and kind of a configuration file.
const (
	configAPIVersion = configv1alpha1.GroupName + "/v1alpha1"
	configKind       = "KarmadaInitConfig"
)

// readConfig overrides flags with the file's fields that are not empty. It returns an error if the file
// contains an unknown field.
func (o *initOptions) readConfig(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	if err := o.applyConfig(data); err != nil {
		return fmt.Errorf("--config %s: %w", file, err)
	}
	return nil
}

func (o *initOptions) applyConfig(data []byte) error {
	text := strings.TrimPrefix(strings.TrimSpace(string(data)), "---\n")
	if strings.Contains(text, "\n---") {
		return errors.New("the file has several documents: use one document")
	}
	head := &metav1.TypeMeta{}
	if err := yaml.Unmarshal(data, head); err != nil {
		return fmt.Errorf("decoding the file: %w", err)
	}
	if head.APIVersion != configAPIVersion || head.Kind != configKind {
		return fmt.Errorf("the file has apiVersion %q and kind %q: use %s and %s", head.APIVersion, head.Kind, configAPIVersion, configKind)
	}
	var config struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              initSpec `json:"spec"`
	}
	if err := yaml.UnmarshalStrict(data, &config); err != nil {
		return fmt.Errorf("decoding the file: %w", err)
	}
	if config.Spec.HostCluster.SecretRef != nil {
		return errors.New("spec.hostCluster.secretRef: this command reads the host from a kubeconfig: use spec.hostCluster.kubeconfig")
	}
	if config.Spec.HostCluster.APIEndpoint != "" {
		return errors.New("spec.hostCluster.apiEndpoint: this command reads the host from a kubeconfig: use spec.hostCluster.kubeconfig")
	}
	// The encoding contains only fields that are not empty.
	fields, err := json.Marshal(config.Spec)
	if err != nil {
		return fmt.Errorf("encoding the fields of the file: %w", err)
	}
	if err := json.Unmarshal(fields, &o.initSpec); err != nil {
		return fmt.Errorf("decoding the fields of the file: %w", err)
	}
	o.hostFlags.Path = cmp.Or(o.HostCluster.Kubeconfig, o.hostFlags.Path)
	o.hostFlags.Context = cmp.Or(o.HostCluster.Context, o.hostFlags.Context)
	o.hostFlags.Namespace = cmp.Or(o.Components.KarmadaAPIServer.Networking.Namespace, o.hostFlags.Namespace)
	if labels := o.Etcd.Local.NodeSelectorLabels; len(labels) > 0 {
		o.Etcd.Local.NodeSelector = labels
	}
	return nil
}
