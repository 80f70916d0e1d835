package override

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// image is a container image reference taken apart: [registry/]repository[:tag][@digest].
type image struct {
	registry, repository, tag, digest string
}

var (
	repositoryForm = regexp.MustCompile(`^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*$`)
	registryForm   = regexp.MustCompile(`^(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?$`)
	tagForm        = regexp.MustCompile(`^\w[\w.-]{0,127}$`)
	digestForm     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}$`)
)

// parseImage takes an image reference apart. What stands before the first slash
// is a registry when it could be a host: it has a dot or a colon, or is localhost.
func parseImage(text string) (image, error) {
	var parsed image
	rest := text
	if name, digest, found := strings.Cut(rest, "@"); found {
		if !digestForm.MatchString(digest) {
			return image{}, fmt.Errorf("image %q has an invalid digest", text)
		}
		parsed.digest, rest = digest, name
	}
	if host, path, found := strings.Cut(rest, "/"); found && (strings.ContainsAny(host, ".:") || host == "localhost") {
		if !registryForm.MatchString(host) {
			return image{}, fmt.Errorf("image %q has an invalid registry", text)
		}
		parsed.registry, rest = host, path
	}
	if name, tag, found := strings.Cut(rest, ":"); found {
		if !tagForm.MatchString(tag) {
			return image{}, fmt.Errorf("image %q has an invalid tag", text)
		}
		parsed.tag, rest = tag, name
	}
	if !repositoryForm.MatchString(rest) {
		return image{}, fmt.Errorf("image %q has an invalid repository", text)
	}
	parsed.repository = rest
	return parsed, nil
}

// String puts the reference together again. An image without a repository has
// none of its other parts either, except for its registry.
func (i image) String() string {
	text := i.repository
	if i.registry != "" {
		text = strings.TrimSuffix(i.registry+"/"+text, "/")
	}
	if i.tag != "" {
		text += ":" + i.tag
	}
	if i.digest != "" {
		text += "@" + i.digest
	}
	return text
}

// with is the image after one overrider. Registry and repository leave the rest
// alone. The tag, or the digest if there is no tag, is one component; whichever
// of the two is written, the other is dropped, for it names another content.
func (i image) with(entry policyv1alpha1.ImageOverrider) image {
	switch entry.Component {
	case policyv1alpha1.Registry:
		i.registry = combine(i.registry, entry)
	case policyv1alpha1.Repository:
		i.repository = combine(i.repository, entry)
	case policyv1alpha1.Tag:
		current := i.tag
		if current == "" {
			current = i.digest
		}
		i = i.tagged(combine(current, entry))
	}
	return i
}

// tagged sets tag or digest, whichever the text is; anything else leaves the
// image as it was.
func (i image) tagged(text string) image {
	switch {
	case text == "":
		i.tag, i.digest = "", ""
	case tagForm.MatchString(text):
		i.tag, i.digest = text, ""
	case digestForm.MatchString(text):
		i.tag, i.digest = "", text
	}
	return i
}

func combine(current string, entry policyv1alpha1.ImageOverrider) string {
	switch entry.Operator {
	case policyv1alpha1.OverriderOpAdd:
		return current + entry.Value
	case policyv1alpha1.OverriderOpReplace:
		return entry.Value
	case policyv1alpha1.OverriderOpRemove:
		return ""
	default:
		return current
	}
}

// overrideImage changes the image at the predicate's path, in any kind, or else
// the images of all containers of a workload.
func overrideImage(manifest *unstructured.Unstructured, entry policyv1alpha1.ImageOverrider) error {
	if entry.Predicate != nil {
		return overrideImageAt(manifest, entry)
	}
	return eachContainer(manifest, func(path pointer, container map[string]any) error {
		current, present := container["image"]
		if !present {
			return nil // legal in a template: something else fills it in
		}
		changed, err := changeImage(append(slices.Clone(path), "image"), current, entry)
		if err != nil {
			return err
		}
		container["image"] = changed
		return nil
	})
}

func overrideImageAt(manifest *unstructured.Unstructured, entry policyv1alpha1.ImageOverrider) error {
	path, err := parsePointer(entry.Predicate.Path)
	if err != nil {
		return err
	}
	current, err := path.get(manifest.Object)
	if err != nil {
		return edit{operator: policyv1alpha1.OverriderOpRemove, path: path}.advise(err)
	}
	changed, err := changeImage(path, current, entry)
	if err != nil {
		return err
	}
	_, err = edit{operator: policyv1alpha1.OverriderOpReplace, path: path, value: changed}.apply(manifest.Object)
	return err
}

func changeImage(path pointer, current any, entry policyv1alpha1.ImageOverrider) (string, error) {
	text, ok := current.(string)
	if !ok {
		return "", mismatchf(path.String(), "let the path lead to an image", "expected a string, found %s", describe(current))
	}
	parsed, err := parseImage(text)
	if err != nil {
		return "", &mismatchError{path: path.String(), remedy: "correct the image in the template", err: err}
	}
	return parsed.with(entry).String(), nil
}
