// Package rendering renders the objects of an installation of Karmada from the values of the
// installation and the chart of Karmada, which is the only description of these objects.
//
// Rendering is a pure function: it reads no cluster and no clock, and the same input gives the same
// objects.
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

// DefaultRelease is the release of a control plane that is not installed by the chart.
const DefaultRelease = "karmada"

// Values are values of the chart, in the form that a YAML file gives.
type Values = map[string]any

// Installation is one installation of Karmada.
type Installation struct {
	// Release is the prefix of the names of the objects. Namespace is their namespace in the host.
	Release, Namespace string
	// Values replace values of the chart.
	Values Values
	// Version is the version of the images, unless the values contain another one.
	Version string
}

// Host returns the objects in the host cluster, in the order of the names of their templates.
// Objects that only Helm needs, such as hooks, are not part of them.
func (i Installation) Host() ([]*unstructured.Unstructured, error) {
	return i.render(func(name string) bool { return strings.HasPrefix(name, templatesDir) })
}

// ControlPlane is what the objects inside the control plane depend on besides the values.
type ControlPlane struct {
	// Server is the URL of the API server for clusters that register.
	Server string
	// CA is the certificate authority of all servers of the control plane in PEM.
	CA []byte
	// APIServers are the addresses of the servers that the API server aggregates, by the name of the
	// component.
	APIServers map[string]Address
	// Webhook is the URL of the webhook without a path. It is empty if the API server has the
	// admission of Karmada built in.
	Webhook string
}

// Merge returns the values base with the values of over, which win. Neither argument is changed.
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

// Address is the address of a server.
type Address struct {
	// Host is a DNS name or an IPv4 address.
	Host string
	Port int
}

// ControlPlane returns the objects inside the control plane that need no CRD: namespaces, roles,
// registrations of servers, and what clusters need to register.
func (i Installation) ControlPlane(c ControlPlane) ([]*unstructured.Unstructured, error) {
	apiServers := Values{}
	for name, address := range c.APIServers {
		apiServers[name] = Values{"host": address.Host, "port": address.Port}
	}
	i.Values = Merge(i.Values, Values{"controlPlane": Values{"server": c.Server, "ca": string(c.CA), "apiServers": apiServers, "webhook": c.Webhook}})
	return i.render(func(name string) bool { return strings.HasPrefix(name, controlPlaneDir) })
}

// EffectiveValues returns the values of the chart with the replacements of this installation. An
// error names the value that violates the schema of the chart.
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
	values, err := util.ToRenderValues(loaded, i.Values, common.ReleaseOptions{Name: i.Release, Namespace: i.Namespace, Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return nil, fmt.Errorf("values of the installation: %w", err)
	}
	// Templates of hooks and other objects for Helm are excluded by this name.
	release, _ := values["Release"].(map[string]any)
	release["Service"] = "Karmada"
	return values, nil
}

// render renders the templates that keep accepts, besides the helpers.
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
		if isHelper(file.Name) || keep(file.Name) && isManifest(file.Name) {
			selected.Templates = append(selected.Templates, file)
		}
	}
	rendered, err := engine.Render(&selected, values)
	if err != nil {
		return nil, fmt.Errorf("rendering the chart: %w", shorten(err))
	}
	return decodeAll(rendered)
}

func isHelper(name string) bool { return path.Ext(name) == ".tpl" }

func isManifest(name string) bool { return path.Ext(name) == ".yaml" }

// executionError matches the beginning of an error of the template function "required" or "fail". It
// is the place in the template.
var executionError = regexp.MustCompile(`^execution error at \([^)]*\): `)

// shorten returns the message of the template function "required" or "fail".
func shorten(err error) error {
	if text := err.Error(); executionError.MatchString(text) {
		return errors.New(executionError.ReplaceAllString(text, ""))
	}
	return err
}

// decodeAll decodes the objects of rendered templates.
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

// load loads the chart once. The templates of the control plane are templates like the others, but
// Helm itself regards them as files that it does not apply to the host.
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
