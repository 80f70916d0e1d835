package rendering

import "strings"

// ImageName is the name of the image with all programs of Karmada below a registry of the user.
const ImageName = "karmada"

// Image returns the image with all programs of a version, which the chart uses by default.
func Image(version string) string { return "docker.io/karmada/" + ImageName + ":" + version }

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
