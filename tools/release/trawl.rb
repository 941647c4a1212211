# Homebrew's formula of Trawl. A release fills in its version and the checksums of its archives.
class Trawl < Formula
  desc "Search of all the code of your Git repositories"
  homepage "@SOURCE@"
  version "@VERSION@"
  license "Apache-2.0"

  depends_on "git"

  on_macos do
    on_arm do
      url "@SOURCE@/releases/download/v#{version}/trawl-#{version}-darwin-arm64.tar.gz"
      sha256 "@DARWIN_ARM64@"
    end
    on_intel do
      url "@SOURCE@/releases/download/v#{version}/trawl-#{version}-darwin-amd64.tar.gz"
      sha256 "@DARWIN_AMD64@"
    end
  end
  on_linux do
    on_arm do
      url "@SOURCE@/releases/download/v#{version}/trawl-#{version}-linux-arm64.tar.gz"
      sha256 "@LINUX_ARM64@"
    end
    on_intel do
      url "@SOURCE@/releases/download/v#{version}/trawl-#{version}-linux-amd64.tar.gz"
      sha256 "@LINUX_AMD64@"
    end
  end

  def install
    bin.install "trawl"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/trawl.bash" => "trawl"
    zsh_completion.install "completions/_trawl"
    fish_completion.install "completions/trawl.fish"
  end

  service do
    run [opt_bin/"trawl", "up", "--data-dir", var/"trawl"]
    keep_alive true
  end

  test do
    (testpath/"code/a.txt").write "needle"
    system bin/"trawl", "shard", "build", "--out", "code.trawl", "code"
    assert_match "needle", shell_output("#{bin}/trawl shard search code.trawl needle")
  end
end
