// What writes the bills of materials of images.
module github.com/trawl-search/trawl/tools/sbom

go 1.26.0

require github.com/CycloneDX/cyclonedx-go v0.12.0
