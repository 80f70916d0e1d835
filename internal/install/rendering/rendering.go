// Package rendering renders an installation's objects from its values and the Karmada chart, which is the
// only description of these objects.
//
// Rendering is a pure function: it reads neither a cluster nor a clock, and returns the same objects for the
// same input.
package rendering

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"karmada.io/karmada/charts"
)

// Directories of the chart.
const (
	chartDir        = "karmada"
	templatesDir    = "templates/"
	controlPlaneDir = "control-plane/"
)

// DefaultRelease is the release name of installations that Helm does not manage.
const DefaultRelease = "karmada"

// Values are chart values, as decoded from a YAML file.
type Values = map[string]any

// Installation is one installation of Karmada.
type Installation struct {
	// Release is the prefix of the objects' names. Namespace is their namespace in the host cluster.
	Release, Namespace string
	// Values override the chart's default values.
	Values Values
	// Version is the images' version, unless the values contain another one.
	Version string
}

// Host returns the host cluster's objects in the order of their templates' names. It leaves out objects that
// only Helm needs, such as hooks.
func (i Installation) Host() ([]*unstructured.Unstructured, error) {
	return i.render(func(name string) bool { return strings.HasPrefix(name, templatesDir) })
}

// ControlPlane contains the additional inputs of the objects inside the control plane.
type ControlPlane struct {
	// Server is the API server's URL for clusters that register.
	Server string
	// CA is the CA certificate for all of the control plane's servers, in PEM.
	CA []byte
	// APIServers are the addresses of the aggregated API servers by component name.
	APIServers map[string]Address
	// Webhook is the webhook's URL without a path. It is empty if the API server has Karmada's admission
	// built in.
	Webhook string
}

// Merge returns a copy of base that is overridden by the values of over. It changes neither argument.
func Merge(base, over Values) Values {
	return util.MergeTables(deepCopy(over), deepCopy(base))
}

func deepCopy(values Values) Values {
	copied := make(Values, len(values))
	for key, value := range values {
		if table, ok := value.(Values); ok {
			value = deepCopy(table)
		}
		copied[key] = value
	}
	return copied
}

// Address is a server's address.
type Address struct {
	// Host is a DNS name or an IPv4 address.
	Host string
	Port int
}

// ControlPlane returns the objects inside the control plane that need no CRD: namespaces, roles, server
// registrations, and the objects that a cluster reads to register.
func (i Installation) ControlPlane(c ControlPlane) ([]*unstructured.Unstructured, error) {
	apiServers := Values{}
	for name, address := range c.APIServers {
		apiServers[name] = Values{"host": address.Host, "port": address.Port}
	}
	i.Values = Merge(i.Values, Values{"controlPlane": Values{"server": c.Server, "ca": string(c.CA), "apiServers": apiServers,
		"webhook": c.Webhook}})
	return i.render(func(name string) bool { return strings.HasPrefix(name, controlPlaneDir) })
}

// EffectiveValues returns the chart's default values, overridden by the installation's values. If a value
// violates the chart's schema, the returned error names it.
func (i Installation) EffectiveValues() (Values, error) {
	values, err := i.renderValues()
	if err != nil {
		return nil, err
	}
	effective, _ := values["Values"].(common.Values)
	return effective, nil
}

func (i Installation) renderValues() (common.Values, error) {
	loaded, err := load()
	if err != nil {
		return nil, err
	}
	values, err := util.ToRenderValues(loaded, i.Values,
		common.ReleaseOptions{Name: i.Release, Namespace: i.Namespace, Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return nil, fmt.Errorf("values of the installation: %w", err)
	}
	// Templates exclude hooks and other objects that only Helm needs by this name.
	release, _ := values["Release"].(map[string]any)
	release["Service"] = "Karmada"
	return values, nil
}

// render renders the helpers and the manifest templates whose name keep accepts.
func (i Installation) render(keep func(name string) bool) ([]*unstructured.Unstructured, error) {
	values, err := i.renderValues()
	if err != nil {
		return nil, err
	}
	loaded, err := load()
	if err != nil {
		return nil, err
	}
	selected := *loaded
	metadata := *loaded.Metadata
	metadata.AppVersion = i.Version
	selected.Metadata = &metadata
	selected.Templates = nil
	for _, file := range loaded.Templates {
		if path.Ext(file.Name) == ".tpl" || keep(file.Name) && isManifest(file.Name) {
			selected.Templates = append(selected.Templates, file)
		}
	}
	rendered, err := engine.Render(&selected, values)
	if err != nil {
		return nil, fmt.Errorf("rendering the chart: %w", shorten(err))
	}
	return decodeAll(rendered)
}

func isManifest(name string) bool { return path.Ext(name) == ".yaml" }

// executionError matches the position in the template with which Helm prefixes an error of the template
// functions "required" and "fail".
var executionError = regexp.MustCompile(`^execution error at \([^)]*\): `)

// shorten returns only the message if the template function "required" or "fail" returned the error.
func shorten(err error) error {
	if text := err.Error(); executionError.MatchString(text) {
		return errors.New(executionError.ReplaceAllString(text, ""))
	}
	return err
}

// decodeAll decodes the objects in rendered templates, sorted by template name.
func decodeAll(rendered map[string]string) ([]*unstructured.Unstructured, error) {
	names := make([]string, 0, len(rendered))
	for name := range rendered {
		if isManifest(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var all []*unstructured.Unstructured
	for _, name := range names {
		objects, err := decode(rendered[name])
		if err != nil {
			return nil, fmt.Errorf("template %s: %w", name, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

func decode(text string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading a document: %w", err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return nil, fmt.Errorf("decoding a document: %w", err)
		}
		if len(object.Object) == 0 {
			continue // only comments
		}
		if object.GetKind() == "" || object.GetName() == "" {
			return nil, fmt.Errorf("a document has no kind or no name: %s", bytes.TrimSpace(document))
		}
		objects = append(objects, object)
	}
}

// load loads the chart once. It adds the control plane's templates to the chart's templates, because Helm
// treats them as plain files and does not apply them to the host cluster.
var load = sync.OnceValues(func() (*chart.Chart, error) {
	var files []*archive.BufferedFile
	err := fs.WalkDir(charts.Karmada, chartDir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(charts.Karmada, name)
		files = append(files, &archive.BufferedFile{Name: strings.TrimPrefix(name, chartDir+"/"), Data: data})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return nil, fmt.Errorf("loading the chart: %w", err)
	}
	for _, file := range loaded.Files {
		if strings.HasPrefix(file.Name, controlPlaneDir) {
			loaded.Templates = append(loaded.Templates, file)
		}
	}
	slices.SortFunc(loaded.Templates, func(a, b *common.File) int { return cmp.Compare(a.Name, b.Name) })
	return loaded, nil
})
