package rendering

import "strings"

// ImageName is the name of the image with all programs of Karmada below a registry of the user.
const ImageName = "karmada"

// LocalRegistry is the registry in the name of an image that was built and not pushed to any registry.
const LocalRegistry = "localhost/karmada"

// Image returns the name that the build gives to the image with all programs of a version. Nodes have
// this image only after it was loaded into them.
func Image(version string) string { return LocalRegistry + "/" + ImageName + ":" + version }

// LocalImage returns the values that select the image of Image for all components.
func LocalImage() Values {
	return Values{"componentDefaults": Values{"image": Values{"registry": LocalRegistry, "repository": ImageName}}}
}

// SplitImage splits an image into its name and its tag or digest. Without both, the tag is latest, as
// in container runtimes.
func SplitImage(image string) (repository, tag string) {
	if name, digest, ok := strings.Cut(image, "@"); ok {
		return name, digest
	}
	colon := strings.LastIndex(image, ":")
	if colon < 0 || strings.Contains(image[colon:], "/") {
		return image, "latest"
	}
	return image[:colon], image[colon+1:]
}
